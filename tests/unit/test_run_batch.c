/* The promise of lib/kernels/README.md over whole passes: a row's bits depend on the weights and on its sequence alone.
 * Seeded compositions of batches (which sequences, in which order, with or without slots, how cut into prefill and
 * decode, how many hooks listen) on every kernel table of this machine and 1, 2 and 4 threads, each row compared with
 * the same sequence run alone by the reference. */
#include <math.h>
#include <unistd.h>

#include "../../lib/kernels/kernels.h"
#include "run_kit.h"

enum { COMPOSITIONS = 75, MORE = 300 }; /* make check, make check-slow */
enum { TEXTS = 6, SLOTS = 3, MAX_PASS = 64, MAX_TABLES = 8, PASSES = 4 };

/* What is compared: the stream behind each block, inner values, the logits. */
static const char *const heard[] = {"hook_resid_post", "attn.hook_z", "mlp.hook_post", "ln1.hook_out"};
enum { HEARD = sizeof heard / sizeof *heard };

/* One model, its texts, and what each row of them must be. */
typedef struct fixture {
    weir_model *m;
    const weir_model_info *info;
    int64_t ctx;
    int32_t *ids[TEXTS];
    kit_tap tap[TEXTS];   /* [ctx] rows of every point */
    float *logits[TEXTS]; /* [ctx,V] */
} fixture;

static void fixture_open(fixture *f, const char *path)
{
    weir_err err = {0};
    f->m = kit_open(path);
    f->info = weir_model_info_of(f->m);
    f->ctx = f->info->ctx < 40 ? f->info->ctx : 40;
    for (int i = 0; i < TEXTS; i++) {
        weir_run *r = kit_run(f->m, f->ctx, 0, "ref", 1);
        f->ids[i] = kit_ids(f->m, f->ctx, 100 + (uint64_t)i);
        f->logits[i] = malloc((size_t)(f->ctx * f->info->V) * sizeof(float));
        kit_tap_init(&f->tap[i], f->m);
        kit_attach(r, &f->tap[i]);
        kit_forward(r, f->ids[i], f->ctx, -1, WEIR_FINAL);
        kit_ok(weir_run_logits(r, 0, f->ctx, f->logits[i], &err), &err);
        weir_run_free(r);
    }
}

static void fixture_close(fixture *f)
{
    for (int i = 0; i < TEXTS; i++) {
        free(f->ids[i]);
        free(f->logits[i]);
        kit_tap_free(&f->tap[i]);
    }
    weir_model_free(f->m);
}

/* One pass of a composition: which text each sequence continues, and from where. */
typedef struct planned {
    weir_seq seq[TEXTS + SLOTS];
    int text[TEXTS + SLOTS];
    int64_t from[TEXTS + SLOTS];
    int n;
} planned;

static void compare_rows(const fixture *f, const planned *p, const float *got, int64_t width, const char *name)
{
    const float *row = got;
    for (int s = 0; s < p->n; s++) {
        const float *want = name ? kit_heard(&f->tap[p->text[s]], f->m, name) : f->logits[p->text[s]];
        kit_same(want + p->from[s] * width, row, p->seq[s].n * width, name ? name : "logits");
        row += p->seq[s].n * width;
    }
}

static void check_pass(const fixture *f, weir_run *r, const kit_tap *t, const planned *p)
{
    weir_err err = {0};
    int64_t rows = 0;
    for (int s = 0; s < p->n; s++)
        rows += p->seq[s].n;
    for (int64_t l = 0; t && l < f->info->L; l++)
        for (int k = 0; k < HEARD; k++) {
            char name[96];
            snprintf(name, sizeof name, "blocks.%lld.%s", (long long)l, heard[k]);
            compare_rows(f, p, kit_heard(t, f->m, name), weir_model_point(f->m, name)->width, name);
        }
    float *logits = malloc((size_t)(rows * f->info->V) * sizeof *logits);
    kit_ok(weir_run_logits(r, 0, rows, logits, &err), &err);
    compare_rows(f, p, logits, f->info->V, NULL);
    free(logits);
}

/* Draws the sequences of one pass: each slot goes on with its text, others start one of their own; in a random order.
 */
static planned draw(const fixture *f, weir_run *r, int *slot_text, uint64_t *rng)
{
    planned p = {0};
    int64_t room = MAX_PASS;
    int wanted = 1 + (int)(kit_random(rng) % (TEXTS + 1));
    bool taken[SLOTS] = {false};
    for (int k = 0; k < wanted && room > 0; k++) {
        int slot = (int)(kit_random(rng) % (SLOTS + 2)) - 2; /* negative: no slot */
        if (slot >= 0 && taken[slot])
            continue;
        if (slot >= 0 && (weir_run_slot_len(r, slot) == f->ctx || weir_run_slot_len(r, slot) == 0)) {
            weir_run_slot_reset(r, slot);
            slot_text[slot] = (int)(kit_random(rng) % TEXTS);
        }
        int text = slot >= 0 ? slot_text[slot] : (int)(kit_random(rng) % TEXTS);
        int64_t from = slot >= 0 ? weir_run_slot_len(r, slot) : 0;
        int64_t most = f->ctx - from < room ? f->ctx - from : room, n;
        switch (kit_random(rng) % 4) { /* decode, all there is, or some of it */
        case 0:
            n = 1;
            break;
        case 1:
            n = most;
            break;
        default:
            n = 1 + (int64_t)(kit_random(rng) % (uint64_t)most);
        }
        p.seq[p.n] = (weir_seq){.ids = f->ids[text] + from, .n = n, .slot = slot < 0 ? -1 : slot, .tag = k};
        p.text[p.n] = text;
        p.from[p.n++] = from;
        if (slot >= 0)
            taken[slot] = true;
        room -= n;
    }
    return p;
}

static void composition(const fixture *f, const char *table, int threads, uint64_t seed)
{
    weir_err err = {0};
    uint64_t rng = seed;
    int slot_text[SLOTS] = {0};
    bool listen = kit_random(&rng) % 2;
    weir_run *r = kit_run(f->m, MAX_PASS, SLOTS, table, threads);
    kit_tap t;
    kit_tap_init(&t, f->m);
    if (listen)
        kit_attach(r, &t);
    for (int pass = 0; pass < PASSES; pass++) {
        planned p = draw(f, r, slot_text, &rng);
        kit_ok(weir_run_forward(r, p.seq, p.n, WEIR_FINAL, &err), &err);
        check_pass(f, r, listen ? &t : NULL, &p);
    }
    kit_tap_free(&t);
    weir_run_free(r);
}

static void test_compositions(void **state)
{
    static const int threads[] = {1, 2, 4};
    const weir_kern *table[MAX_TABLES];
    fixture f[KIT_MODELS];
    const int tables = weir_kern_available(table, MAX_TABLES), compositions = getenv("WEIR_SLOW") ? MORE : COMPOSITIONS;
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++)
        fixture_open(&f[k], kit_models[k]);
    printf("tables:");
    for (int t = 0; t < tables; t++)
        printf(" %s", weir_kern_name(table[t]));
    printf(", threads 1 2 4, %d compositions of %d passes each\n", compositions, PASSES);
    for (int n = 0; n < 3; n++) /* every composition on every table; the thread counts take turns */
        for (int i = 0; i < compositions; i++)
            for (int t = 0; t < tables; t++)
                if ((i / KIT_MODELS + t) % 3 == n)
                    composition(&f[i % KIT_MODELS], weir_kern_name(table[t]), threads[n], 1000 + (uint64_t)i);
    for (int k = 0; k < KIT_MODELS; k++)
        fixture_close(&f[k]);
}

/* brook is larger than the tiny ones: several panels, several blocks of queries. */
static void test_brook(void **state)
{
    const weir_kern *table[MAX_TABLES];
    fixture f;
    int tables = weir_kern_available(table, MAX_TABLES);
    (void)state;
    fixture_open(&f, NULL);
    for (int i = 0; i < 3; i++)
        for (int t = i > 0; t < tables; t++) /* the reference, which is slow, once */
            composition(&f, weir_kern_name(table[t]), 2, 5000 + (uint64_t)i);
    fixture_close(&f);
}

/* Token by token gives what the whole gives, to the end of the context. */
static void test_decode_is_prefill(void **state)
{
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        fixture f;
        fixture_open(&f, kit_models[k]);
        weir_run *r = kit_run(f.m, 1, 1, NULL, 2);
        kit_tap t;
        kit_tap_init(&t, f.m);
        kit_attach(r, &t);
        for (int64_t i = 0; i < f.ctx; i++) {
            planned p = {.seq = {{.ids = f.ids[0] + i, .n = 1, .slot = 0}}, .from = {i}, .n = 1};
            kit_forward(r, f.ids[0] + i, 1, 0, WEIR_FINAL);
            check_pass(&f, r, &t, &p);
        }
        assert_int_equal(weir_run_slot_len(r, 0), f.ctx);
        kit_tap_free(&t);
        weir_run_free(r);
        fixture_close(&f);
    }
}

/* Very many short sequences: their key panels do not fit the plan at once and go through in groups. */
static void test_many_short_sequences(void **state)
{
    enum { N = 96 };
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        weir_err err = {0};
        fixture f;
        fixture_open(&f, kit_models[k]);
        for (int listen = 0; listen < 2; listen++) {
            weir_seq seq[N];
            weir_run *r = kit_run(f.m, N, 0, NULL, 2);
            kit_tap t;
            kit_tap_init(&t, f.m);
            if (listen)
                kit_attach(r, &t);
            for (int i = 0; i < N; i++)
                seq[i] = (weir_seq){.ids = f.ids[i % TEXTS], .n = 1, .slot = -1};
            kit_ok(weir_run_forward(r, seq, N, WEIR_FINAL, &err), &err);
            float *logits = malloc((size_t)(N * f.info->V) * sizeof *logits);
            kit_ok(weir_run_logits(r, 0, N, logits, &err), &err);
            for (int i = 0; i < N; i++)
                kit_same(f.logits[i % TEXTS], logits + i * f.info->V, f.info->V, "logits of a short sequence");
            free(logits);
            kit_tap_free(&t);
            weir_run_free(r);
        }
        fixture_close(&f);
    }
}

/* --- NaN stays in its sequence, and in the rows behind it */

static void poison(kit_tap *t, const weir_value *v)
{
    (void)t;
    for (int64_t r = 0; r < v->rows->n; r++)
        if (v->rows->tag[r] == 1 && v->rows->pos[r] == 4)
            v->data[r * v->width] = NAN;
}

static void test_nan_stays(void **state)
{
    static const char *const at[] = {"hook_embed", "blocks.0.attn.hook_v", "blocks.0.attn.hook_k",
                                     "blocks.0.mlp.hook_post"};
    const weir_kern *table[MAX_TABLES];
    int tables = weir_kern_available(table, MAX_TABLES);
    (void)state;
    for (int k = 0; k < KIT_MODELS; k++) {
        fixture f;
        fixture_open(&f, kit_models[k]);
        int64_t v = f.info->V;
        float *first = NULL; /* what the reference makes of the poisoned sequence */
        for (int i = 0; i < 4 * tables * 2; i++) {
            weir_err err = {0};
            weir_selector *s;
            kit_tap t;
            weir_run *r = kit_run(f.m, 40, 0, weir_kern_name(table[i / 2 % tables]), 1 + i % 2);
            kit_tap_init(&t, f.m);
            kit_ok(weir_selector_parse(&s, f.m, at[i / (2 * tables)], &err), &err);
            t.only = s;
            t.write = true;
            t.edit = poison;
            kit_attach(r, &t);
            const weir_seq seq[] = {{.ids = f.ids[0], .n = 9, .slot = -1, .tag = 0},
                                    {.ids = f.ids[1], .n = 11, .slot = -1, .tag = 1},
                                    {.ids = f.ids[2], .n = 13, .slot = -1, .tag = 2}};
            float *logits = malloc((size_t)(33 * v) * sizeof *logits);
            kit_ok(weir_run_forward(r, seq, 3, WEIR_FINAL, &err), &err);
            kit_ok(weir_run_logits(r, 0, 33, logits, &err), &err);
            kit_same(f.logits[0], logits, 9 * v, "the sequence before");
            kit_same(f.logits[1], logits + 9 * v, 4 * v, "rows before the NaN");
            kit_same(f.logits[2], logits + 20 * v, 13 * v, "the sequence behind");
            assert_true(isnan(logits[13 * v]));
            if (i % (2 * tables) == 0) {
                free(first);
                first = logits;
            } else {
                kit_same(first, logits, 33 * v, "NaN and all, on every table");
                free(logits);
            }
            weir_run_free(r);
            weir_selector_free(s);
            kit_tap_free(&t);
        }
        free(first);
        fixture_close(&f);
    }
}

/* Threads that wait must not spin here: there are more of them than processors, and thousands of tiny passes. libgomp
 * reads the environment when it is loaded, so the program starts itself anew. */
static void wait_without_spinning(char **argv)
{
    if (getenv("OMP_WAIT_POLICY"))
        return;
    setenv("OMP_WAIT_POLICY", "passive", 1);
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    (void)argc;
    wait_without_spinning(argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compositions),      cmocka_unit_test(test_brook),
        cmocka_unit_test(test_decode_is_prefill), cmocka_unit_test(test_many_short_sequences),
        cmocka_unit_test(test_nan_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
