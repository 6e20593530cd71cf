"""Trees of life, genomes and pictures of molecules."""

import random
import re

from setting import Case, Wrong


def sequences(species=10, length=400, seed=7):
    """Names and sequences of species that descend from one, always the same."""
    chance = random.Random(seed)
    known = [[chance.choice("ACGT") for _ in range(length)]]
    while len(known) < species:
        # A species splits, and both halves change.
        parent = known.pop(chance.randrange(len(known)))
        for _ in range(2):
            known.append([chance.choice("ACGT") if chance.random() < 0.08 else base for base in parent])
    return [(f"taxon{place:02}", "".join(bases)) for place, bases in enumerate(known)]


def phylip(job, name="tree.phy"):
    rows = sequences()
    job.write(name, f"{len(rows)} {len(rows[0][1])}\n" + "".join(f"{taxon}   {bases}\n" for taxon, bases in rows))
    return name


def nexus(job, commands, name="tree.nex"):
    rows = sequences()
    matrix = "".join(f"    {taxon} {bases}\n" for taxon, bases in rows)
    job.write(name, f"#NEXUS\nbegin data;\n  dimensions ntax={len(rows)} nchar={len(rows[0][1])};\n"
                    f"  format datatype=dna missing=? gap=-;\n  matrix\n{matrix}  ;\nend;\n{commands}")
    return name


def one(pattern, text):
    """The last match."""
    found = re.findall(pattern, text)
    if not found:
        raise Wrong(f"no {pattern} in the output\n{text[-1500:]}")
    return found[-1]


def iqtree(job):
    job.mpi("iqtree2-mpi", "-s", phylip(job), "-m", "GTR+G", "-seed", "12345", "-redo", "-nt", "1")
    text = job.read("tree.phy.iqtree")
    return [float(one(r"Log-likelihood of the tree: (\S+)", text)), float(one(r"Total tree length .*: (\S+)", text)),
            one(r"MPI: +(\d+) processes", job.read("tree.phy.log"))]


def phyml(job):
    # Bootstraps are shared out among the ranks, whose random numbers depend on their number.
    job.mpi("phyml-mpi", "-i", phylip(job), "-b", str(2 * job.ranks), "-m", "HKY85", "--r_seed", "99", "--no_memory_check")
    text = job.read("tree.phy_phyml_stats.txt")
    trees = job.read("tree.phy_phyml_boot_trees.txt").splitlines()
    return [float(one(r"Log-likelihood:\s+(\S+)", text)), len(trees), *sorted(trees)]


def garli(job):
    nexus(job, "")
    job.input("garli.conf")
    job.mpi("garli-mpi", str(job.ranks), "garli.conf")
    return [float(one(r"Final score = (-[\d.]+)", job.read(f"out.run{rank:02}.screen.log")))
            for rank in range(job.ranks)]


def mrbayes(job):
    commands = ("begin mrbayes;\n  set autoclose=yes nowarn=yes seed=11 swapseed=12;\n  lset nst=2 rates=gamma;\n"
                "  mcmc ngen=2000 samplefreq=100 printfreq=500 nchains=2 nruns=2;\n  sumt;\nend;\n")
    job.mpi("/usr/lib/mrbayes-mpi/mb-mpi", nexus(job, commands))
    return [line for run in [1, 2] for line in job.read(f"tree.nex.run{run}.p").splitlines()[2:]]


def reads(job):
    """A genome of 4000 bases, and reads of 80 from both strands."""
    chance = random.Random(5)
    genome = "".join(chance.choice("ACGT") for _ in range(4000))
    other = genome[::-1].translate(str.maketrans("ACGT", "TGCA"))
    rows = []
    for place in range(1600):
        strand, start = chance.choice([genome, other]), chance.randrange(4000 - 80)
        rows.append(f">read{place}\n{strand[start:start + 80]}\n")
    job.write("reads.fa", "".join(rows))
    return genome


def contigs(text):
    """The sequences of a FASTA file, each on that strand which comes first in the alphabet."""
    found = ["".join(part.splitlines()[1:]).upper() for part in text.split(">")[1:]]
    return sorted(min(bases, bases[::-1].translate(str.maketrans("ACGT", "TGCA"))) for bases in found)


def within(genome, found):
    """All contigs are parts of the genome."""
    other = genome[::-1].translate(str.maketrans("ACGT", "TGCA"))
    if not found or any(bases not in genome and bases not in other for bases in found):
        raise Wrong(f"contigs that are no part of the genome: {[len(bases) for bases in found]}")
    return found


def abyss(job):
    genome = reads(job)
    job.mpi("/usr/lib/abyss/ABYSS-P", "-k31", "-q3", "-e2", "-c2", "--coverage-hist=hist", "-s", "bubbles.fa",
            "-o", "contigs.fa", "reads.fa")
    return within(genome, contigs(job.read("contigs.fa")))


def ray(job):
    genome = reads(job)
    job.mpi("Ray", "-k", "31", "-s", "reads.fa", "-o", "out")
    return within(genome, contigs(job.read("out/Contigs.fasta")))


CASES = [
    Case("iqtree", "iqtree", "10 sequences of 400 bases, GTR+G", "likelihood and length of the tree", iqtree, 1e-6,
         quick=True),
    Case("phyml", "phyml", "the same, bootstraps", "likelihood, trees", phyml, 1e-6),
    Case("garli", "garli-mpi", "the same, a search on each rank", "likelihoods", garli, 1e-5),
    Case("mrbayes", "mrbayes-mpi", "the same, 4 Markov chains", "all samples", mrbayes, quick=False),
    Case("abyss", "abyss", "1600 reads of a genome of 4000 bases", "contigs are parts of the genome", abyss),
    Case("ray", "ray", "the same", "the same", ray),
]
