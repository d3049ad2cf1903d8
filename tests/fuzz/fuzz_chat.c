/* Chat templates: an input is a template. One that parses renders a conversation, or refuses in one line; the same
 * twice; and never more than its bounds allow. */
#include <weir/chat.h>

#include "driver.h"

static const weir_turn turns[] = {{"system", {"Be brief.", 9}},
                                  {"user", {"caf\xc3\xa9 \xff <|im_end|>", 17}},
                                  {"assistant", {"", 0}},
                                  {"user", {"  x\n", 4}}};

static void render(weir_chat *c, int64_t n, bool generation)
{
    weir_err first = {0}, second = {0};
    weir_str text;
    promise_error(weir_chat_render(c, turns, n, generation, &text, &first), &first);
    char *copy = malloc(text.n + 1);
    size_t size = text.n;
    PROMISE(copy && size <= (128 << 20));
    memcpy(copy, text.p, size);
    promise_error(weir_chat_render(c, turns, n, generation, &text, &second), &second);
    PROMISE(first.code == second.code && strcmp(first.msg, second.msg) == 0);
    PROMISE(text.n == size && memcmp(text.p, copy, size) == 0);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_chat *c;
    weir_err err = {0};
    weir_status st = weir_chat_new(&c, (const char *)data, size, "template", NULL, &err);
    promise_error(st, &err);
    PROMISE((st == WEIR_OK) == (c != NULL));
    if (c) {
        render(c, 4, true);
        render(c, 1, false);
        render(c, 0, true);
    }
    weir_chat_free(c);
    return 0;
}
