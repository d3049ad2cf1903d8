/* support/attention_gather.c: windows that are too long for attention's memory, for tests/cli/test_attention.py: prints the
 * error of a token at position POS of a window, with HEADS heads, or "fits".   attention_gather HEADS POS */
#include <stdlib.h>

#include "attention/gather.h"

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const weir_attention_about about = {.n_heads = atoi(argv[1])};
    const weir_attention_token t = {.doc = 3, .ctx_pos = atoll(argv[2]), .query = true};
    weir_attention_gather g;
    weir_err err = {0};
    if (weir_attention_gather_open(&g, &about, &err) == WEIR_OK)
        puts(weir_attention_gather_add(&g, &t, &err) == WEIR_OK ? "fits" : err.msg);
    weir_attention_gather_close(&g);
    return 0;
}
