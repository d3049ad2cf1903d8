/* Every allocation of opening a tokenizer and encoding with it fails once: each time a clean error, and nothing leaks.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/tokenizer.h>

#include "support/oom.h"

/* A text that needs the normaliser, long pieces and many tokens. */
static const char *text(void)
{
    static char t[3000];
    if (!t[0]) {
        strcpy(t, "Hello e\xcc\x81\xcc\x81  world <s> a b\n");
        while (strlen(t) < 1500)
            strcat(t, "abcdabcd");
        strcat(t, " it's\xff");
    }
    return t;
}

static weir_status use(const void *path, weir_err *err)
{
    weir_tokenizer *t;
    WEIR_TRY(weir_tokenizer_open(&t, path, NULL, err));
    weir_tokens k = {0};
    weir_status s = weir_tokenizer_encode(t, text(), strlen(text()), &k, err);
    weir_tokens_free(&k);
    weir_tokenizer_free(t);
    return s;
}

static void test_tiny(void **state)
{
    (void)state;
    for (int i = 0; i < 24; i++) {
        char path[64];
        snprintf(path, sizeof path, "tests/data/tokenizers/tiny/%02d.json", i);
        assert_in_range(oom_each(use, path), 20, 5000);
    }
}

static void test_with_files_beside(void **state)
{
    (void)state;
    assert_in_range(oom_each(use, "lib/brook"), 20, 5000);
    assert_in_range(oom_each(use, "tests/data/tokenizers/gpt2"), 20, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tiny), cmocka_unit_test(test_with_files_beside)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
