/* The launcher of compiler children as a program of its own, for tests of the pool. */
#include "common/compiler/compiler.h"

int main(int argc, char **argv)
{
    bool was_child = false;
    int rc = compiler_child_main(argc, argv, &was_child);
    return was_child ? rc : 2;
}
