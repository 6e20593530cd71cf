"""Trees of life, genomes and pictures of molecules."""

import array
import random
import re
import struct

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
    job.mpi("phyml-mpi", "-i", phylip(job), "-b", str(2 * job.ranks), "-m", "HKY85", "--r_seed", "99",
            "--no_memory_check")
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


def star(block, names, rows):
    """A table of RELION."""
    labels = "".join(f"_rln{name} #{place}\n" for place, name in enumerate(names, 1))
    return f"\ndata_{block}\n\nloop_\n{labels}" + "\n".join(rows) + "\n\n"


def relion(job):
    """A volume of four balls, projected from 40 directions, and made again from these pictures."""
    n, balls = 32, [(0, 0, 0, 4), (7, 2, -3, 3), (-5, 6, 4, 3), (2, -8, 1, 2)]
    values = array.array("f", [float(sum((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2 < r * r for a, b, c, r in balls))
                               for z in range(-n // 2, n // 2) for y in range(-n // 2, n // 2)
                               for x in range(-n // 2, n // 2)])
    header = struct.pack("<10i6f3i", n, n, n, 2, 0, 0, 0, n, n, n, n, n, n, 90, 90, 90, 1, 2, 3)
    (job.folder / "balls.mrc").write_bytes(header.ljust(1024, b"\0") + values.tobytes())
    chance = random.Random(3)
    optics = {"OpticsGroup": 1, "OpticsGroupName": "one", "Voltage": 300, "SphericalAberration": 2.7,
              "AmplitudeContrast": 0.1, "ImagePixelSize": 1, "ImageSize": n, "ImageDimensionality": 2}
    rows = [f"{chance.uniform(0, 360):.3f} {chance.uniform(0, 180):.3f} {chance.uniform(0, 360):.3f} "
            f"{place:06}@pictures.mrcs 1" for place in range(1, 41)]
    job.write("angles.star", star("optics", optics, [" ".join(map(str, optics.values()))])
              + star("particles", ["AngleRot", "AngleTilt", "AnglePsi", "ImageName", "OpticsGroup"], rows))
    job.tool("relion_project", "--i", "balls.mrc", "--ang", "angles.star", "--angpix", "1", "--o", "pictures")
    job.mpi("relion_reconstruct_mpi", "--i", "pictures.star", "--o", "again.mrc", "--angpix", "1")
    made = array.array("f", (job.folder / "again.mrc").read_bytes()[1024:])
    return [float(len(made)), *(sum(made[z * n * n:(z + 1) * n * n]) for z in range(0, n, 4))]


CASES = [
    Case("iqtree", "iqtree", "10 sequences of 400 bases, GTR+G", "likelihood and length of the tree", iqtree, 1e-6,
         quick=True),
    Case("phyml", "phyml", "the same, bootstraps", "likelihood, trees", phyml, 1e-6),
    Case("garli", "garli-mpi", "the same, a search on each rank", "likelihoods", garli, 1e-5),
    Case("mrbayes", "mrbayes-mpi", "the same, 4 Markov chains", "all samples", mrbayes, quick=False),
    Case("abyss", "abyss", "1600 reads of a genome of 4000 bases", "contigs are parts of the genome", abyss),
    Case("relion", "relion", "pictures of four balls from 40 directions", "the volume that they give", relion, 1e-4),
]
