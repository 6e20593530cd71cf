"""HDF5's parallel tests, with the helpers that its tests share."""

from building import LIBRARIES, Case, Step

# One program of many tests.
MANY = ["testphdf5", "t_dset", "t_file", "t_file_image", "t_mdset", "t_ph5basic", "t_coll_chunk", "t_span_tree",
        "t_chunk_alloc", "t_filter_read", "t_prop", "t_coll_md_read"]
NAMES = ["t_mpi", "testphdf5", "t_shapesame", "t_filters_parallel", "t_pread", "t_init_term", "t_bigio", "t_cache"]
SHORT = ["t_mpi", "testphdf5"]
# Those that need more ranks, or write files of many GiB on four.
RANKS = {"t_cache": (4,), "t_bigio": (2,)}
# Steps that belong together: the second looks at the file of the first.
PAIRS = {"t_pshutdown, t_prestart": ("t_pshutdown", "t_prestart"), "t_pflush1, t_pflush2": ("t_pflush1", "t_pflush2")}


def cases(place, abi):
    """The tests for an ABI: which of Debian's libraries they are linked to."""
    source = place.source("hdf5")
    made = place.files / "built" / abi
    made.mkdir(parents=True, exist_ok=True)
    (made / "H5srcdir_str.h").write_text(f'const char *config_srcdir = "{source}/testpar";\n')
    folders = [made, place.files / "usr/include/hdf5" / abi, place.files / "usr/include",
               *(source / name for name in ["src", "test", "testpar"])]
    library = next((place.files / LIBRARIES).glob(f"libhdf5_{abi}.so.[0-9]*"))

    def program(name):
        files = MANY if name == "testphdf5" else [name]
        helpers = ["h5test", "testframe"]
        command = ["-std=gnu99", "-DNDEBUG", *(f"-I{folder}" for folder in folders),
                   *(source / "testpar" / f"{file}.c" for file in files),
                   *(source / "test" / f"{file}.c" for file in helpers), library]
        return place.program(abi, name, command)

    for name in SHORT if place.quick else NAMES:
        made = program(name)
        yield Case(name, abi, (Step(made),), RANKS.get(name, (2, 4)))
    if place.quick:
        return
    for name, steps in PAIRS.items():
        # A program that does not finish MPI, on purpose, ends as its MPI likes.
        codes = [None if step == "t_pflush1" else 0 for step in steps]
        yield Case(name, abi, tuple(Step(program(step), code=code) for step, code in zip(steps, codes)))
