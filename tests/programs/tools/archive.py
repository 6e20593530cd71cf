"""Counts what an OTF2 archive holds, as OTF2's own library reads it: archive.py FOLDER/traces.otf2."""

import collections
import sys

import otf2

counts, inside, last = collections.Counter(), collections.defaultdict(list), {}
with otf2.reader.open(sys.argv[1]) as archive:
    counts["locations"] = len(list(archive.definitions.locations))
    ranks = next(iter(archive.definitions.comms)).group.members
    counts["ranks"] = len(ranks)
    for location, event in archive.events:
        assert event.time >= last.get(location, 0), "times go back"
        last[location] = event.time
        kind = type(event).__name__
        if kind == "Enter":
            inside[location].append(event.region)
            counts[event.region.name] += 1
        elif kind == "Leave":
            assert inside[location].pop() is event.region, "regions overlap"
        else:
            counts[kind] += 1
            other = ranks[event.receiver if kind == "MpiSend" else event.sender]
            assert location in ranks and other in ranks, "a message of nobody"
            counts[f"bytes of {kind}"] += event.msg_length
assert not any(inside.values()), "regions without an end"
for name, count in sorted(counts.items()):
    print(f"{name}={count}")
