/* Rounds of point-to-point messages: all modes of sending, receives that are posted or late, exact or with
   wildcards, plain or with gaps in memory. Order is checked too: the next message of a sender is the one it sent
   next.

   No cycle of waits: everybody posts its receives before it sends; a receiver that is late gets nonblocking sends. */
#include "soak.h"

#define MOST 400
#define GUARD 32
#define GUARD_BYTE 0xa5

enum { EXACT, ANY_SOURCE, ANY_BOTH, LATE, MODES };
enum { SEND, SSEND, BSEND, ISEND, ISSEND, IBSEND, PERSISTENT, SENDS };

typedef struct {
    int from, to, tag, length, send, block, gap;
    uint64_t key;
    int received;
} Message;

/* Bytes that lie in blocks, each followed by a gap; no blocks: without gaps. */
typedef struct {
    int length, block, gap;
    unsigned char *memory;
    size_t span;
    MPI_Datatype type;
    int count;
} Area;

static Area new_area(int length, int block, int gap) {
    Area area = {.length = length, .block = block, .gap = gap, .type = MPI_BYTE, .count = length};
    area.span = (size_t)length;
    if (block > 0 && length > 0) {
        int blocks = length / block, rest = length % block;
        area.span = (size_t)length + (size_t)blocks * gap;
        int lengths[2] = {1, rest};
        MPI_Aint places[2] = {0, (MPI_Aint)blocks * (block + gap)};
        MPI_Datatype parts[2] = {MPI_DATATYPE_NULL, MPI_BYTE};
        MPI_Type_create_hvector(blocks, block, block + gap, MPI_BYTE, &parts[0]);
        MPI_Type_create_struct(2, lengths, places, parts, &area.type);
        MPI_Type_commit(&area.type);
        MPI_Type_free(&parts[0]);
        area.count = 1;
    }
    area.memory = malloc(area.span + GUARD);
    memset(area.memory, GUARD_BYTE, area.span + GUARD);
    return area;
}

static void free_area(Area *area) {
    if (area->type != MPI_BYTE) MPI_Type_free(&area->type);
    free(area->memory);
}

/* Moves the first bytes between an area and a plain buffer. */
static void copy_area(const Area *area, unsigned char *plain, int length, int into) {
    int block = area->block > 0 ? area->block : length + 1;
    for (int at = 0, place = 0; at < length; at += block, place += block + area->gap) {
        size_t part = (size_t)(length - at < block ? length - at : block);
        if (into) memcpy(area->memory + place, plain + at, part);
        else memcpy(plain + at, area->memory + place, part);
    }
}

/* Memory that no message's byte belongs to is as it was. */
static int is_whole(const Area *area, int length) {
    int block = area->block > 0 ? area->block : area->length + 1;
    for (int at = 0, place = 0; at < area->length; at += block, place += block + area->gap) {
        int part = area->length - at < block ? area->length - at : block;
        for (int i = at + part > length ? (length > at ? length - at : 0) : part; i < part; i++)
            if (area->memory[place + i] != GUARD_BYTE) return 0;
        if (part == block)
            for (int i = 0; i < area->gap; i++)
                if (area->memory[place + block + i] != GUARD_BYTE) return 0;
    }
    for (int i = 0; i < GUARD; i++)
        if (area->memory[area->span + (size_t)i] != GUARD_BYTE) return 0;
    return 1;
}

typedef struct {
    int count, has_wildcards;
    Message list[MOST];
    int modes[1024];
    int longest; /* to this rank */
    unsigned char *plain;
} Plan;

static Plan *make_plan(Round *round) {
    Plan *plan = calloc(1, sizeof *plan);
    Dice *dice = &round->dice;
    int most_bytes = one_in(dice, 6) ? 1 << 20 : one_in(dice, 2) ? 70000 : 3000;
    int most = most_bytes > 100000 ? 24 : most_bytes > 3000 ? 120 : MOST;
    plan->count = 1 + below(dice, most);
    if (plan->count > round->effort) plan->count = round->effort;
    for (int rank = 0; rank < round->size; rank++) {
        int mode = plan->modes[rank % 1024] = below(dice, MODES);
        if (mode == ANY_SOURCE || mode == ANY_BOTH) plan->has_wildcards = 1;
    }
    int focus = one_in(dice, 3) ? below(dice, round->size) : -1;
    for (int i = 0; i < plan->count; i++) {
        Message *message = &plan->list[i];
        message->from = below(dice, round->size);
        message->to = focus >= 0 && !one_in(dice, 4) ? focus : below(dice, round->size);
        message->tag = below(dice, 4);
        message->length = some_length(dice, most_bytes);
        message->key = key_of(round, message->from, message->to, i);
        message->send = below(dice, SENDS);
        if (plan->modes[message->to % 1024] == LATE && message->send < ISEND) message->send += ISEND;
        if (one_in(dice, 5)) message->block = 1 + below(dice, 100), message->gap = below(dice, 40);
        if (message->to == round->me && message->length > plan->longest) plan->longest = message->length;
    }
    plan->plain = malloc((1 << 20) + 8);
    return plan;
}

/* The next message of that sender that this receive must have taken. */
static Message *next_of(const Round *round, Plan *plan, int source, int tag, int any_tag) {
    for (int i = 0; i < plan->count; i++) {
        Message *message = &plan->list[i];
        if (message->to != round->me || message->from != source || message->received) continue;
        if (any_tag || message->tag == tag) return message;
    }
    return NULL;
}

static void check_received(const Round *round, Plan *plan, Area *area, const MPI_Status *status, int any_tag) {
    Message *message = next_of(round, plan, status->MPI_SOURCE, status->MPI_TAG, any_tag);
    if (!message) wrong(round, "a message of rank %d, tag %d, that nobody sent", status->MPI_SOURCE, status->MPI_TAG);
    message->received = 1;
    int length = -1, number = (int)(message - plan->list);
    MPI_Get_elements(status, area->type, &length);
    if (message->tag != status->MPI_TAG || message->length != length)
        wrong(round, "message %d of rank %d: tag %d and %d bytes, not tag %d and %d bytes", number, message->from,
              status->MPI_TAG, length, message->tag, message->length);
    copy_area(area, plan->plain, length, 0);
    size_t at = first_wrong(plan->plain, (size_t)length, message->key);
    if (at < (size_t)length)
        wrong(round, "message %d of rank %d, %d bytes (sent as %d, mode %d): byte %zu is wrong", number,
              message->from, length, message->send, plan->modes[round->me % 1024], at);
    if (!is_whole(area, length)) wrong(round, "message %d of rank %d wrote beyond its place", number, message->from);
    count_done(1, (uint64_t)length);
}

static int send_one(const Round *round, Plan *plan, const Message *message, Area *area, MPI_Request *request) {
    *area = new_area(message->length, message->block, message->gap);
    fill_bytes(plan->plain, (size_t)message->length, message->key);
    copy_area(area, plan->plain, message->length, 1);
    void *data = area->memory;
    int count = area->count, to = message->to, tag = message->tag;
    switch (message->send) {
    case SEND: MPI_Send(data, count, area->type, to, tag, round->comm); return 0;
    case SSEND: MPI_Ssend(data, count, area->type, to, tag, round->comm); return 0;
    case BSEND: MPI_Bsend(data, count, area->type, to, tag, round->comm); return 0;
    case IBSEND: MPI_Ibsend(data, count, area->type, to, tag, round->comm, request); return 1;
    case ISEND: MPI_Isend(data, count, area->type, to, tag, round->comm, request); return 1;
    case ISSEND: MPI_Issend(data, count, area->type, to, tag, round->comm, request); return 1;
    default:
        MPI_Send_init(data, count, area->type, to, tag, round->comm, request);
        MPI_Start(request);
        return 1;
    }
}

/* One receive after everything was sent: by probe, matched probe, or by itself. */
static void receive_late(const Round *round, Plan *plan, const Message *message, Dice *own) {
    MPI_Status status;
    MPI_Message handle;
    int flag, length, source = message->from, tag = message->tag;
    int any = one_in(own, 2);
    Area area;
    switch (below(own, 4)) {
    case 0:
        MPI_Probe(source, any ? MPI_ANY_TAG : tag, round->comm, &status);
        MPI_Get_count(&status, MPI_BYTE, &length);
        area = new_area(length, 0, 0);
        MPI_Recv(area.memory, length, MPI_BYTE, source, status.MPI_TAG, round->comm, &status);
        break;
    case 1:
        MPI_Mprobe(source, any ? MPI_ANY_TAG : tag, round->comm, &handle, &status);
        MPI_Get_count(&status, MPI_BYTE, &length);
        area = new_area(length, 0, 0);
        MPI_Mrecv(area.memory, length, MPI_BYTE, &handle, &status);
        break;
    case 2:
        for (flag = 0; !flag;) MPI_Improbe(source, any ? MPI_ANY_TAG : tag, round->comm, &flag, &handle, &status);
        MPI_Get_count(&status, MPI_BYTE, &length);
        area = new_area(length, one_in(own, 2) ? 24 : 0, 7);
        MPI_Request request;
        MPI_Imrecv(area.memory, area.count, area.type, &handle, &request);
        compute(own);
        MPI_Wait(&request, &status);
        break;
    default:
        area = new_area(plan->longest, 0, 0);
        MPI_Recv(area.memory, area.count, area.type, source, any ? MPI_ANY_TAG : tag, round->comm, &status);
        break;
    }
    check_received(round, plan, &area, &status, any);
    free_area(&area);
}

static void receive_all_late(const Round *round, Plan *plan, Dice *own) {
    for (;;) {
        /* Any of those that are left may be wanted next; each is the first of its sender. */
        int left = 0, chosen;
        for (int i = 0; i < plan->count; i++) left += plan->list[i].to == round->me && !plan->list[i].received;
        if (left == 0) return;
        chosen = below(own, left);
        for (int i = 0; i < plan->count; i++) {
            if (plan->list[i].to != round->me || plan->list[i].received) continue;
            if (chosen-- == 0) {
                receive_late(round, plan, &plan->list[i], own);
                break;
            }
        }
    }
}

void messages(Round *round) {
    Plan *plan = make_plan(round);
    Dice own = own_dice(round, round->me, 1);
    int mode = plan->modes[round->me % 1024], posted = 0, sent = 0, pending = 0, incoming = 0;
    Area *in = calloc(MOST, sizeof *in), *out = calloc(MOST, sizeof *out);
    MPI_Request *receives = malloc(MOST * sizeof *receives), *sends = malloc(MOST * sizeof *sends);
    MPI_Status *statuses = malloc(2 * MOST * sizeof *statuses);
    MPI_Request *kept = malloc(MOST * sizeof *kept);
    size_t room = MPI_BSEND_OVERHEAD;
    int keeps = 0;
    for (int i = 0; i < plan->count; i++) {
        const Message *message = &plan->list[i];
        if (message->from == round->me) room += (size_t)message->length + MPI_BSEND_OVERHEAD + 64;
        if (message->to != round->me) continue;
        incoming++;
        if (mode == LATE) continue;
        in[posted] = new_area(plan->longest, one_in(&own, 5) ? 1 + below(&own, 64) : 0, below(&own, 20));
        int source = mode == EXACT ? message->from : MPI_ANY_SOURCE,
            tag = mode == ANY_BOTH ? MPI_ANY_TAG : message->tag;
        if (one_in(&own, 6)) {
            MPI_Recv_init(in[posted].memory, in[posted].count, in[posted].type, source, tag, round->comm,
                          &receives[posted]);
            MPI_Start(&receives[posted]);
            kept[keeps++] = receives[posted];
        } else {
            MPI_Irecv(in[posted].memory, in[posted].count, in[posted].type, source, tag, round->comm,
                      &receives[posted]);
        }
        posted++;
    }
    void *attached = NULL;
    int size;
    if (round->part == 0) MPI_Buffer_attach(malloc(room), (int)room);
    for (int i = 0; i < plan->count; i++) {
        const Message *message = &plan->list[i];
        if (message->from != round->me) continue;
        compute(&own);
        Message changed = *message;
        if (round->part > 0 && (changed.send == BSEND || changed.send == IBSEND)) changed.send = ISEND;
        if (send_one(round, plan, &changed, &out[sent], &sends[pending])) {
            if (changed.send == PERSISTENT) kept[keeps++] = sends[pending];
            pending++;
        }
        sent++;
    }
    if (mode == LATE) {
        receive_all_late(round, plan, &own);
    } else {
        compute(&own);
        complete(round, &own, posted, receives, statuses);
        for (int i = 0; i < posted; i++) check_received(round, plan, &in[i], &statuses[i], mode == ANY_BOTH);
    }
    complete(round, &own, pending, sends, statuses);
    for (int i = 0; i < keeps; i++) MPI_Request_free(&kept[i]);
    if (round->part == 0) MPI_Buffer_detach(&attached, &size), free(attached);
    /* A wildcard must not take what a rank sends that is a round ahead. */
    if (plan->has_wildcards) MPI_Barrier(round->comm);
    for (int i = 0; i < plan->count && incoming; i++)
        EXPECT(round, plan->list[i].to != round->me || plan->list[i].received);
    for (int i = 0; i < posted; i++) free_area(&in[i]);
    for (int i = 0; i < sent; i++) free_area(&out[i]);
    free(in), free(out), free(receives), free(sends), free(statuses), free(kept), free(plan->plain), free(plan);
}

/* Short messages as fast as they go, round the ring in both directions. */
void burst(Round *round) {
    enum { WINDOW = 64 };
    int windows = 1 + below(&round->dice, one_in(&round->dice, 8) ? 2000 : 200);
    int shift = round->size > 1 ? 1 + below(&round->dice, round->size - 1) : 0;
    int words = 1 + below(&round->dice, 3), blocking = one_in(&round->dice, 2), any = one_in(&round->dice, 3);
    int to = (round->me + shift) % round->size, from = (round->me + round->size - shift) % round->size;
    if (round->size > 2 || round->part > 0) windows = 1 + windows / (round->part > 0 ? 4 * round->size : round->size);
    if (windows > round->effort) windows = round->effort;
    uint64_t in[WINDOW][3], out[WINDOW][3], there = key_of(round, from, round->me, 0),
                                            here = key_of(round, round->me, to, 0);
    MPI_Request requests[2 * WINDOW];
    Dice own = own_dice(round, round->me, 2);
    for (int window = 0; window < windows; window++) {
        for (int i = 0; i < WINDOW; i++)
            MPI_Irecv(in[i], words, MPI_UINT64_T, any ? MPI_ANY_SOURCE : from, 9, round->comm, &requests[i]);
        for (int i = 0; i < WINDOW; i++) {
            for (int part = 0; part < words; part++)
                out[i][part] = word(here, (uint64_t)(window * WINDOW + i) * 4 + part);
            requests[WINDOW + i] = MPI_REQUEST_NULL;
            if (blocking) MPI_Send(out[i], words, MPI_UINT64_T, to, 9, round->comm);
            else MPI_Isend(out[i], words, MPI_UINT64_T, to, 9, round->comm, &requests[WINDOW + i]);
        }
        if (window % 32 == 0) compute(&own);
        MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < WINDOW; i++)
            for (int part = 0; part < words; part++)
                if (in[i][part] != word(there, (uint64_t)(window * WINDOW + i) * 4 + part))
                    wrong(round, "message %d of rank %d is not the one that it sent", window * WINDOW + i, from);
    }
    if (any) MPI_Barrier(round->comm);
    count_done((uint64_t)windows * WINDOW, (uint64_t)windows * WINDOW * words * 8);
}

/* Partitioned messages, whose parts become ready in any order. */
void partitions(Round *round) {
    int shift = round->size > 1 ? 1 + below(&round->dice, round->size - 1) : 0;
    if (shift == 0) return;
    int to = (round->me + shift) % round->size, from = (round->me + round->size - shift) % round->size;
    int parts = 1 + below(&round->dice, 32),
        each = 8 * (1 + below(&round->dice, one_in(&round->dice, 4) ? 9000 : 100));
    int starts = 1 + below(&round->dice, 3), coarse = one_in(&round->dice, 2);
    if (parts > round->effort) parts = round->effort;
    size_t length = (size_t)parts * each;
    unsigned char *in = malloc(length), *out = malloc(length);
    MPI_Request requests[2];
    Dice own = own_dice(round, round->me, 3);
    /* The receiver may cut the message otherwise. */
    MPI_Precv_init(in, coarse ? 1 : parts, coarse ? (MPI_Count)length : each, MPI_BYTE, from, 5, round->comm,
                   MPI_INFO_NULL, &requests[0]);
    MPI_Psend_init(out, parts, each, MPI_BYTE, to, 5, round->comm, MPI_INFO_NULL, &requests[1]);
    for (int start = 0; start < starts; start++) {
        memset(in, GUARD_BYTE, length);
        fill_bytes(out, length, key_of(round, round->me, to, start));
        MPI_Startall(2, requests);
        int first = below(&own, parts);
        for (int i = 0; i < parts; i++) {
            if (one_in(&own, 8)) compute(&own);
            MPI_Pready((first + i) % parts, requests[1]);
        }
        for (int part = 0, flag; part < parts && !coarse && one_in(&own, 2); part++)
            for (flag = 0; !flag;) MPI_Parrived(requests[0], part, &flag);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        size_t at = first_wrong(in, length, key_of(round, from, round->me, start));
        if (at < length) wrong(round, "start %d of %d parts of %d bytes: byte %zu is wrong", start, parts, each, at);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    count_done((uint64_t)starts * parts, starts * length);
    free(in), free(out);
}
