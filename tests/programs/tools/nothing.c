// Linked to an MPI library that it does not call: what happens at its start is what counts.
int main(void) { return 0; }
