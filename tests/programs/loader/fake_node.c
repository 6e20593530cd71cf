/* Stands in for the node image: notes what the loader told it, and reports it. VERSION is that of
 * the boot records. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct place { uint32_t cpu, core, l3, numa; };
struct boot {
    uint64_t magic;
    uint32_t version, node_ranks, world_ranks, cpus;
    const char *const *environment;
    const void *ranks;
    const struct place *places;
    uint32_t places_len;
    int32_t report_fd;
    uint32_t node, nodes;
    const void *homes, *network;
};

static const struct boot *given;

static void *attach(const void *boot, uint32_t abi)
{
    (void)boot;
    (void)abi;
    return NULL;
}

static void report(void *node)
{
    int stats = 0;
    for (const char *const *entry = given->environment; *entry; entry++)
        stats |= !strcmp(*entry, "COHORT_STATS=counters");
    dprintf(given->report_fd, "report: node=%d ranks=%u world=%u cpus=%d places=%d stats=%d alone=%d\n",
            node == (void *)&given, given->node_ranks, given->world_ranks, given->cpus >= 1,
            given->places_len >= given->cpus, stats,
            given->node == 0 && given->nodes == 1 && !given->homes && !given->network);
}

static const struct {
    uint32_t version;
    void *(*attach)(const void *, uint32_t);
    void (*report)(void *);
} api = {VERSION, attach, report};

const void *cohort_node_open(const struct boot *boot, void **node)
{
    if (boot->magic != 0x3154524f484f4350 || boot->version != VERSION)
        return NULL;
    given = boot;
    *node = &given;
    return &api;
}
