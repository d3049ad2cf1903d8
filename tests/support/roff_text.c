/* Its argument as a paragraph of roff, and as a literal block. */
#include "cli/roff.h"

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    weir_roff_text(stdout, argv[1]);
    fputs(".PP\n", stdout);
    weir_roff_literal(stdout, argv[1]);
    return 0;
}
