/* Prints what the library beside the program says; it is found through $ORIGIN. */
#include <stdio.h>

const char *beside(void);

int main(int argc, char **argv)
{
    (void)argc;
    printf("%s %s\n", argv[0], beside());
    return 0;
}
