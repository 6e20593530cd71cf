"""A client of PMI-1: tells its rank to all others of its job and prints theirs."""
import os

rank, size = (int(os.environ[name]) for name in ("PMI_RANK", "PMI_SIZE"))
stream = os.fdopen(int(os.environ["PMI_FD"]), "r+b", 0)


def ask(**fields):
    line = " ".join(f"{key}={value}" for key, value in fields.items())
    stream.write(line.encode() + b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        answer += stream.read(1)
    return dict(field.split("=") for field in answer.decode().split())


ask(cmd="init", pmi_version=1, pmi_subversion=1)
space = ask(cmd="get_my_kvsname")["kvsname"]
ask(cmd="put", kvsname=space, key=f"rank{rank}", value=rank)
ask(cmd="barrier_in")
print(*(ask(cmd="get", kvsname=space, key=f"rank{other}")["value"] for other in range(size)))
ask(cmd="finalize")
