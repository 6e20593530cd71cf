#!/usr/bin/env python3
"""Makes an OTF2 archive of a timeline of COHORT_TRACE, for Vampir, Scalasca, Score-P's tools and others.

    trace-to-otf2.py job.trace FOLDER

FOLDER must not exist; FOLDER/traces.otf2 is what tools open. Needs OTF2's own Python module: `pip install otf2`, or the
package python3-otf2. What each event becomes is in docs/insight.md.
"""

import argparse
import json
import pathlib
import sys

# Categories whose pieces are regions, and what OTF2 calls such a region.
REGIONS = {"mpi": "FUNCTION", "sleep": "TASK_WAIT", "steal": "TASK", "helped": "TASK", "copy": "DATA_TRANSFER",
           "turn": "TASK"}
MESSAGES = {"sent", "received"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("timeline", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    asked = parser.parse_args()
    try:
        import otf2
    except ImportError:
        sys.exit("trace-to-otf2: no module otf2: `pip install otf2`, or install python3-otf2")
    if asked.folder.exists():
        sys.exit(f"trace-to-otf2: {asked.folder} exists already")
    try:
        timeline = json.loads(asked.timeline.read_text())
        tracks, clocks = read(timeline), timeline["otherData"]["clocks"]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        sys.exit(f"trace-to-otf2: {asked.timeline} is no timeline of COHORT_TRACE: {problem!r}")
    with otf2.writer.open(str(asked.folder), timer_resolution=1_000_000_000) as archive:
        write(otf2, archive, tracks, {clock["node"]: clock["host"] for clock in clocks})
    print(asked.folder / "traces.otf2")


class Track:
    """What happened on one track: a thread of a rank, or what others did for it."""

    def __init__(self, event):
        self.name = event["args"]["name"]
        self.node = event["pid"] - 1
        # "rank 3", "rank 3: thread 1", "rank 1.0": rank 0 of the first world that was spawned.
        self.rank_name = self.name.split(":")[0]
        self.rank = event["tid"] // 100 - 1
        # The others of a rank are beside its first one.
        self.is_first = event["tid"] % 100 == 0
        # (begin, end, category, name)
        self.pieces = []
        # (time, category, peer, tag, bytes)
        self.messages = []


def read(timeline):
    """All tracks, in the order of ranks. Times are nanoseconds."""
    tracks = {(event["pid"], event["tid"]): Track(event) for event in timeline["traceEvents"]
              if event["ph"] == "M" and event["name"] == "thread_name"}
    for event in timeline["traceEvents"]:
        if event["ph"] != "X":
            continue
        place, begin = (event["pid"], event["tid"]), round(event["ts"] * 1000)
        if event["cat"] in MESSAGES:
            # Whoever moved a message: it is its rank's.
            first, facts = tracks[event["pid"], event["tid"] // 100 * 100], event["args"]
            first.messages.append((begin, event["cat"], facts["peer"], facts["tag"], facts["bytes"]))
        elif event["cat"] in REGIONS:
            tracks[place].pieces.append((begin, begin + round(event["dur"] * 1000), event["cat"], event["name"]))
    return [tracks[place] for place in sorted(tracks, key=lambda it: (tracks[it].rank, it))]


def write(otf2, archive, tracks, hosts):
    """Nodes with their ranks, a location for each track, one communicator, and all events."""
    known = archive.definitions
    job = known.system_tree_node("Cohort job", class_name="job")
    nodes = {node: known.system_tree_node(host, class_name="node", parent=job) for node, host in sorted(hosts.items())}
    processes, writers, locations = {}, [], []
    for track in tracks:
        if track.rank not in processes:
            processes[track.rank] = known.location_group(track.rank_name, system_tree_parent=nodes[track.node])
        location = known.location(track.name, group=processes[track.rank])
        writers.append(archive.event_writer_from_location(location))
        if track.is_first:
            locations.append(location)
    kinds, paradigm = otf2.GroupType, otf2.Paradigm.MPI
    known.group("ranks", group_type=kinds.COMM_LOCATIONS, paradigm=paradigm, members=tuple(locations))
    world = known.group("world", group_type=kinds.COMM_GROUP, paradigm=paradigm, members=tuple(locations))
    comm = known.comm("MPI_COMM_WORLD", group=world)
    regions = {}

    def region(category, name):
        if (category, name) not in regions:
            role = getattr(otf2.RegionRole, REGIONS[category])
            kind = paradigm if category == "mpi" else otf2.Paradigm.USER
            regions[category, name] = known.region(name, region_role=role, paradigm=kind)
        return regions[category, name]

    for writer, track in zip(writers, tracks):
        for time, _, step in sorted(steps(track), key=lambda it: it[:2]):
            emit(writer, time, step, comm, region)


def steps(track):
    """What a location writes: (time, order among equal times, step). Regions nest: one within another ends with it."""
    order, open_ones = 0, []

    def leave(until):
        nonlocal order
        while open_ones and open_ones[-1][0] <= until:
            end, of = open_ones.pop()
            order += 1
            yield end, order, ("leave", *of)

    pieces = [(begin, -end, ("piece", end, category, name)) for begin, end, category, name in track.pieces]
    points = [(time, 1, ("point", *facts)) for time, *facts in track.messages]
    for begin, _, (kind, *facts) in sorted(pieces + points, key=lambda it: it[:2]):
        yield from leave(begin)
        order += 1
        if kind == "point":
            yield begin, order, ("message", *facts)
            continue
        end, category, name = facts
        end = max(begin, min(end, open_ones[-1][0])) if open_ones else end
        yield begin, order, ("enter", category, name)
        open_ones.append((end, (category, name)))
    yield from leave(float("inf"))


def emit(writer, time, step, comm, region):
    """Writes one step."""
    kind, *facts = step
    if kind == "message":
        category, peer, tag, size = facts
        send_or_receive = writer.mpi_send if category == "sent" else writer.mpi_recv
        send_or_receive(time, peer, comm, max(tag, 0), size)
    else:
        (writer.enter if kind == "enter" else writer.leave)(time, region(*facts))


if __name__ == "__main__":
    main()
