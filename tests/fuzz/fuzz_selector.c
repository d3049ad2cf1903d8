/* Selectors: an input is up to three lines: hooks, layers, sites; the first alone is also a selector by itself. What is
 * selected must hang together, for a model of each kind. */
#include <weir/hook.h>

#include "driver.h"

static const char *const models[] = {"lib/brook", "tests/golden/models/gemma2", "tests/golden/models/neox-parallel",
                                     "tests/golden/models/gpt2"};
enum { N_MODELS = sizeof models / sizeof *models };

/* Opened once; every input reads them. */
static const weir_model *model(int i)
{
    static weir_model *m[N_MODELS];
    if (!m[i] && weir_model_open(&m[i], models[i], NULL, NULL))
        abort();
    return m[i];
}

static void check_units(const weir_selector *s, const weir_point *p)
{
    const int64_t *idx;
    int64_t n;
    weir_selector_units(s, p, &idx, &n);
    PROMISE(weir_selector_matches(s, p) ? n == -1 || n > 0 : n == 0);
    for (int64_t i = 0; i < n; i++)
        PROMISE(idx[i] >= (i ? idx[i - 1] + 1 : 0) && idx[i] < p->width);
}

static void check(const weir_model *m, weir_selector *s)
{
    const weir_point *p;
    int64_t n = weir_model_points(m, &p), matched = 0;
    for (int64_t i = 0; i < n; i++) {
        matched += weir_selector_matches(s, &p[i]);
        check_units(s, &p[i]);
        for (int64_t pos = 0; pos < 3; pos++) {
            bool row = weir_selector_row_at(s, &p[i], pos, 3);
            PROMISE(weir_selector_matches(s, &p[i]) ? row || weir_selector_has_positions(s) : !row);
        }
    }
    PROMISE(matched == weir_selector_count(s) && matched > 0);
}

/* The n-th line of the text as a string of its own, or NULL. */
static char *line(const uint8_t *data, size_t size, int n)
{
    for (; n > 0; n--) {
        const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
        if (!end)
            return NULL;
        size -= (size_t)(end + 1 - data);
        data = end + 1;
    }
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    char *s = strndup((const char *)data, end ? (size_t)(end - data) : size);
    return s ? s : (abort(), NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text[3];
    for (int i = 0; i < 3; i++)
        text[i] = line(data, size, i);
    for (int i = 0; i < N_MODELS; i++) {
        weir_err parsed = {0}, built = {0};
        weir_selector *s;
        promise_error(weir_selector_parse(&s, model(i), text[0], &parsed), &parsed);
        PROMISE((s != NULL) == !parsed.code);
        if (s)
            check(model(i), s);
        weir_selector_free(s);
        promise_error(weir_selector_build(&s, model(i), text[0][0] ? text[0] : NULL, text[1], text[2], &built), &built);
        PROMISE((s != NULL) == !built.code);
        if (s)
            check(model(i), s);
        weir_selector_free(s);
    }
    for (int i = 0; i < 3; i++)
        free(text[i]);
    return 0;
}
