/* The library of where.c. */
const char *beside(void) { return "found beside the program"; }
