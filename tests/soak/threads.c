/* Rounds in which each rank has several threads, each with messages and collectives of its own. */
#include "soak.h"
#include <pthread.h>

#define MOST 4

static void *in_thread(void *argument) {
    Round *round = argument;
    switch (below(&round->dice, 4)) {
    case 0: collectives(round); break;
    case 1: burst(round); break;
    default: messages(round);
    }
    return NULL;
}

void threads(Round *round) {
    int count = 2 + below(&round->dice, MOST - 1);
    pthread_t started[MOST];
    Round parts[MOST];
    for (int part = 0; part < count; part++) {
        parts[part] = *round;
        parts[part].part = part + 1;
        parts[part].key = mix(round->key ^ (uint64_t)(part + 1));
        parts[part].dice = (Dice){mix(parts[part].key)};
        MPI_Comm_dup(round->comm, &parts[part].comm);
    }
    for (int part = 0; part < count; part++)
        EXPECT(round, pthread_create(&started[part], NULL, in_thread, &parts[part]) == 0);
    for (int part = 0; part < count; part++) pthread_join(started[part], NULL);
    for (int part = 0; part < count; part++) MPI_Comm_free(&parts[part].comm);
}
