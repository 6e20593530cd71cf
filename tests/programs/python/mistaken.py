"""As mistakes.c, in Python, with 2 ranks: mistaken.py wrong, or right. Each runs all of its cases. Tests: check/."""

import array
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, peer = world.rank, 1 - world.rank


def numbers(kind, count):
    return array.array(kind, [rank] * count)


def left():
    # They live as long as the operation.
    left.data = numbers("i", 4)
    left.request = world.Irecv(left.data, peer, 1)


def left_barrier():
    left_barrier.requests = [world.Ibarrier() for _ in range(2)]
    left_barrier.requests[1].Wait()


def other_types():
    if rank == 0:
        world.Send(numbers("f", 4), 1, 3)
    else:
        world.Recv(numbers("i", 4), 0, 3)


def some_bytes():
    if rank == 0:
        world.Ssend([numbers("i", 4), MPI.INT], 1, 4)
    else:
        world.Recv([bytearray(16), MPI.BYTE], 0, 4)


def matched_types():
    request = world.Issend(numbers("d", 2), peer, 5)
    message = world.Mprobe(peer, 5)
    message.Recv(numbers("q", 2))
    request.Wait()


def changed():
    data = numbers("i", 100)
    request = world.Isend(data, peer, 6)
    data[70] += 1
    world.Recv(numbers("i", 100), peer, 6)
    request.Wait()


def overlapping():
    data = numbers("i", 8)
    requests = [world.Irecv([data, 5], peer, 7), world.Irecv([memoryview(data)[4:], MPI.INT], peer, 8)]
    for tag in 7, 8:
        world.Bsend(numbers("i", 4), peer, tag)
    MPI.Request.Waitall(requests)


def circle():
    world.Send(numbers("h", 1), peer, 9)
    world.Recv(numbers("h", 1), peer, 9)


def kept():
    if rank == 0:
        MPI.COMM_SELF.Dup()


def puts_meet():
    data = numbers("i", 4)
    window = MPI.Win.Create(data, 4, comm=world)
    out = numbers("i", 4)
    window.Fence()
    window.Put(out, 1)
    window.Fence()
    window.Free()


def started_twice():
    request = world.Recv_init(numbers("i", 1), peer, 10)
    request.Start()
    try:
        request.Start()
    except MPI.Exception as error:
        error.Get_error_class()
    request.Cancel()
    request.Wait()
    request.Free()


def unreceived():
    if rank == 0:
        world.Send(numbers("d", 3), 1, 2)


def right_messages():
    out, data = numbers("i", 4), numbers("i", 4)
    world.Sendrecv(out, peer, 1, data, peer, 1)
    assert data[0] == peer
    requests = [world.Irecv(data, peer, 2), world.Isend(out, peer, 2)]
    MPI.Request.Waitall(requests)
    assert world.sendrecv({"a": rank}, peer, 3, None, peer, 3) == {"a": peer}
    request = world.isend("text", peer, 4)
    assert world.mprobe(peer, 4).recv() == "text"
    request.wait()


def right_collectives():
    data = numbers("d", 10)
    world.Iallreduce(MPI.IN_PLACE, data).Wait()
    world.Bcast(data, 1)
    assert world.gather(rank, 0) == ([0, 1] if rank == 0 else None)


def right_persistent():
    requests = [world.Send_init(numbers("i", 2), peer, 5), world.Recv_init(numbers("i", 2), peer, 5)]
    for _ in range(3):
        MPI.Prequest.Startall(requests)
        MPI.Request.Waitall(requests)
    for request in requests:
        request.Free()


def right_windows():
    window = MPI.Win.Allocate(32, 4, comm=world)
    out = numbers("i", 2)
    for target in range(2):
        window.Fence()
        window.Put(out, target, 2 * rank)
    window.Fence()
    window.Lock(0)
    window.Put(out, 0, 4)
    window.Unlock(0)
    world.Barrier()
    window.Free()


def right_objects():
    row = MPI.INT.Create_vector(2, 1, 2).Commit()
    half = world.Split(rank)
    half.Bcast([numbers("i", 4), 1, row])
    half.Free()
    row.Free()


WRONG = [
    left,
    left_barrier,
    other_types,
    some_bytes,
    matched_types,
    changed,
    overlapping,
    kept,
    puts_meet,
    started_twice,
    circle,
    unreceived,
]
RIGHT = [right_messages, right_collectives, right_persistent, right_windows, right_objects]

if sys.argv[1] == "wrong":
    MPI.Attach_buffer(memoryview(bytearray(10000)))
for case in WRONG if sys.argv[1] == "wrong" else RIGHT:
    case()
    world.Barrier()
if sys.argv[1] == "wrong":
    MPI.Detach_buffer()
