// Prints what MPI_T lists: a line for each variable, event and category.
#include <mpi.h>
#include <stdio.h>

static const char *class_of(int class) {
    switch (class) {
    case MPI_T_PVAR_CLASS_COUNTER: return "counter";
    case MPI_T_PVAR_CLASS_AGGREGATE: return "aggregate";
    case MPI_T_PVAR_CLASS_TIMER: return "timer";
    default: return "unknown";
    }
}

int main(void) {
    int level, count, verbosity, bind, scope, class, readonly, continuous, atomic, cvars, pvars, events, categories;
    MPI_Datatype type;
    MPI_T_enum words;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_cvar_get_num(&count);
    for (int index = 0; index < count; index++) {
        char name[128];
        int length = sizeof name;
        MPI_T_cvar_get_info(index, name, &length, &verbosity, &type, &words, NULL, NULL, &bind, &scope);
        printf("cvar %s %s\n", name, scope == MPI_T_SCOPE_CONSTANT ? "constant" : "writable");
    }
    MPI_T_pvar_get_num(&count);
    for (int index = 0; index < count; index++) {
        char name[128];
        int length = sizeof name;
        MPI_T_pvar_get_info(index, name, &length, &verbosity, &class, &type, &words, NULL, NULL, &bind, &readonly,
                            &continuous, &atomic);
        printf("pvar %s %s %s\n", name, class_of(class), bind == MPI_T_BIND_MPI_COMM ? "communicator" : "rank");
    }
    MPI_T_event_get_num(&count);
    for (int index = 0; index < count; index++) {
        char name[128];
        int length = sizeof name, elements = 0;
        MPI_T_event_get_info(index, name, &length, &verbosity, NULL, NULL, &elements, &words, NULL, NULL, NULL, &bind);
        printf("event %s %d\n", name, elements);
    }
    MPI_T_category_get_num(&count);
    for (int index = 0; index < count; index++) {
        char name[128];
        int length = sizeof name;
        MPI_T_category_get_info(index, name, &length, NULL, NULL, &cvars, &pvars, &categories);
        MPI_T_category_get_num_events(index, &events);
        printf("category %s %d\n", name, cvars + pvars + events + categories);
    }
    MPI_T_finalize();
    return 0;
}
