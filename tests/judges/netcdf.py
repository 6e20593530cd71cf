"""netCDF's parallel tests, over HDF5, and PnetCDF's, as Debian's libraries for Open MPI have them."""

import subprocess

from building import LIBRARIES, Case, Step

# What its script of configuration would find.
CONFIGURED = ["-include", "stdint.h", "-include", "unistd.h", '-DTEMP_LARGE="."', "-DCHUNK_CACHE_SIZE=16777216",
              "-DCHUNK_CACHE_NELEMS=4133", "-DCHUNK_CACHE_PREEMPTION=0.75", *(f"-D{name}=1" for name in [
                  "HAVE_UNISTD_H", "HAVE_STDINT_H", "HAVE_STDBOOL_H", "USE_NETCDF4", "USE_HDF5", "USE_PARALLEL",
                  "USE_PARALLEL4", "HDF5_PARALLEL", "HDF5_SUPPORTS_PAR_FILTERS"])]
# As its script runs them.
NETCDF = {"tst_mode": (1,), "tst_mpi_parallel": (4,), "tst_parallel": (4,), "tst_parallel3": (4, 16),
          "tst_parallel4": (1, 2, 4, 8), "tst_parallel5": (4,), "tst_parallel6": (4,), "tst_nc4perf": (4,),
          "tst_simplerw_coll_r": (1, 2, 4), "tst_parallel_zlib": (4,), "tst_parallel_compress": (1, 4),
          "tst_quantize_par": (4,)}
NETCDF_SHORT = ["tst_parallel3", "tst_parallel6"]
# What its script of configuration would define.
SHORT_NAMES = ["-Dschar=signed char", "-Duchar=unsigned char", "-Dlonglong=long long", "-Dulonglong=unsigned long long"]
PNETCDF = {
    "testcases": [
        "ncmpi_vars_null_stride", "vectors", "collective_error", "test_varm", "alignment_test", "flexible", "flexible2",
        "flexible_varm", "nonblocking", "noclobber", "record", "inq_num_vars", "varn_int", "modes", "one_record",
        "inq_recsize", "test_vard", "test_vard_rec", "test_vard_multiple", "varn_contig", "ivarn", "check_striping",
        "add_var", "buftype_free", "last_large_var", "check_type", "test_erange", "scalar", "null_args",
        "tst_dimsizes", "mix_collectives", "large_var_cdf5", "tst_max_var_dims", "tst_info", "tst_vars_fill",
        "tst_def_var_fill", "test_fillvalue", "error_precedence", "tst_free_comm", "put_all_kinds", "redef1",
        "iput_all_kinds", "tst_version"],
    "nonblocking": ["test_bput", "interleaved", "i_varn_int64", "flexible_bput", "wait_after_indep", "req_all",
                    "i_varn_indef", "large_num_reqs", "bput_varn", "column_wise", "mcoll_perf"],
    "header": ["header_consistency"],
    "largefile": ["large_files", "large_var", "large_dims_vars_attrs", "high_dim_var", "tst_cdf5_begin",
                  "large_coalesce"],
}
PNETCDF_SHORT = ["flexible", "interleaved", "column_wise", "varn_int", "mix_collectives"]


def netcdf(place):
    """Collective and independent access of variables, compressed ones too."""
    source, made = place.source("netcdf-c"), place.files / "built/openmpi/netcdf"
    made.mkdir(parents=True, exist_ok=True)
    (made / "config.h").write_text("")
    libraries = [next((place.files / LIBRARIES).glob(name)) for name in ["libnetcdf_mpi.so.[0-9]*",
                                                                         "libhdf5_openmpi.so.[0-9]*"]]
    folders = [made, place.files / LIBRARIES / "netcdf/mpi/include", source / "include",
               place.files / "usr/include/hdf5/openmpi"]
    for name in NETCDF_SHORT if place.quick else NETCDF:
        command = [*CONFIGURED, *(f"-I{folder}" for folder in folders), source / "nc_test4" / f"{name}.c", *libraries]
        yield Case(name, "openmpi", (Step(place.program("openmpi", name, command, "netcdf")),), NETCDF[name])


def pnetcdf(place):
    """netCDF's classic formats, which PnetCDF writes by itself."""
    source, made = place.source("pnetcdf"), place.files / "built/openmpi/pnetcdf"
    made.mkdir(parents=True, exist_ok=True)
    library = next((place.files / LIBRARIES).glob("libpnetcdf.so.[0-9]*"))
    # mpi.h has what the tests define if they are not told so.
    shared = ["-DHAVE_DECL_MPI_OFFSET", *SHORT_NAMES, f"-I{place.files}/usr/include", f"-I{source}/test/common",
              source / "test/common/testutils.c", library]
    for folder, names in PNETCDF.items():
        for name in names:
            if place.quick and name not in PNETCDF_SHORT:
                continue
            file = source / "test" / folder / f"{name}.c"
            macros = file.with_suffix(".m4")
            if macros.exists():
                file = made / f"{name}.c"
                command = ["m4", "-DPNETCDF", f"-I{source}/m4", str(macros)]
                file.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
            program = place.program("openmpi", name, [file, *shared], "pnetcdf")
            yield Case(name, "openmpi", (Step(program, (f"{name}.nc",)),))
