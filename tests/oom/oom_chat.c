/* Every allocation of a chat template and of a conversation through it, and of a sampler, fails once: each time a clean
 * error, and nothing leaks. */
#include <stdlib.h>
#include <string.h>

#include <weir/chat.h>
#include <weir/sample.h>

#include "support/oom.h"

static const char conversation[] =
    "[{\"role\":\"system\",\"content\":\"S\\n\"},{\"role\":\"user\",\"content\":\" A \"},"
    "{\"role\":\"assistant\",\"content\":\"B\",\"more\":[1,true,null,{\"x\":\"y\"}]},{\"role\":\"user\",\"content\":"
    "\"C\"}]";

static char *read_file(const char *path, size_t *n)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s is missing", path);
    *n = fread(text, 1, sizeof text, f);
    fclose(f);
    return text;
}

static weir_tokenizer *tok; /* opened once, outside of what is measured */

static weir_status use(const void *path, weir_err *err)
{
    size_t n;
    const char *text = read_file(path, &n);
    weir_chat *c;
    weir_tokens t = {0};
    WEIR_TRY(weir_chat_new(&c, text, n, path, tok, err));
    weir_status st = weir_chat_encode_doc(c, (weir_str){conversation, sizeof conversation - 1}, true, NULL, &t, err);
    weir_tokens_free(&t);
    weir_chat_free(c);
    return st;
}

static void test_templates(void **state)
{
    static const char *const names[] = {"smollm2", "llama2", "llama3.1", "mistral-v0.3", "qwen2.5"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        snprintf(path, sizeof path, "tests/data/chat/%s.jinja", names[i]);
        assert_in_range(oom_each(use, path), 20, 5000);
    }
}

static weir_status draw(const void *unused, weir_err *err)
{
    static const float logits[4] = {0, 1, 2, 3};
    weir_sampling o;
    weir_sampler *s;
    int32_t id;
    (void)unused;
    weir_sampling_init(&o);
    o.temperature = 1;
    WEIR_TRY(weir_sampler_new(&s, 4, &o, err));
    weir_status st = weir_sampler_next(s, logits, NULL, 0, 0, 0, &id, err);
    weir_sampler_free(s);
    return st;
}

static void test_sampler(void **state)
{
    (void)state;
    assert_in_range(oom_each(draw, NULL), 5, 10);
}

int main(void)
{
    weir_err err = {0};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_templates), cmocka_unit_test(test_sampler)};
    if (weir_tokenizer_open(&tok, "lib/brook", NULL, &err) != WEIR_OK)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    weir_tokenizer_free(tok);
    return failed;
}
