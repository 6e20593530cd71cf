/* The names of all progress policies, which whoever compiles a test passes on; by hand: -DPOLICIES='"steal", "none"'.
   */
#ifndef POLICIES_H
#define POLICIES_H
static const char *const policy_names[] = {POLICIES};
enum { POLICY_COUNT = sizeof policy_names / sizeof *policy_names };
#endif
