/* The result for people and for programs. */
#include <math.h>
#include <stdlib.h>

#include "direction.h"
#include "cli/printable.h"

static const char *const method_name[] = {"mean", "pca", "probe"}, *const rows_name[] = {"last", "all", "mean"};
static const char *const class_name[] = {"negative", "positive"}, *const side_name[] = {"training", "held_out"};

/* --- facts: in a file's metadata, whose values are strings, and in --json */

typedef struct facts {
    weir_jsonw *w;
    bool text;
} facts;

static void put_text(const facts *f, const char *key, const char *value)
{
    weir_jsonw_key_cstr(f->w, key, value);
}

static void put_int(const facts *f, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    if (f->text)
        weir_jsonw_key_cstr(f->w, key, text);
    else
        weir_jsonw_key_int(f->w, key, value);
}

/* NaN: nothing is known. */
static void put_real(const facts *f, const char *key, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    if (!f->text)
        weir_jsonw_key_double(f->w, key, value);
    else if (!isnan(value))
        weir_jsonw_key_cstr(f->w, key, text);
}

static void put_list(const facts *f, const char *key, const double *value, int64_t n)
{
    char *text = NULL;
    size_t size = 0;
    weir_jsonw w;
    FILE *out = open_memstream(&text, &size);
    if (out) {
        weir_jsonw_init(&w, out);
        weir_jsonw_array(&w);
        for (int64_t i = 0; i < n; i++)
            weir_jsonw_double(&w, value[i]);
        weir_jsonw_end(&w);
        fclose(out);
    }
    weir_jsonw_key(f->w, key);
    if (f->text)
        weir_jsonw_cstr(f->w, text ? text : "");
    else
        weir_jsonw_json(f->w, text);
    free(text);
}

static void put_source(const facts *f, const weir_direction *d)
{
    put_text(f, d->classes && !d->a->label ? "positive" : "dump", d->dump[0].path);
    if (d->n_dumps > 1)
        put_text(f, "negative", d->dump[1].path);
    if (d->a->label)
        put_text(f, "label", d->a->label);
    put_text(f, "rows", rows_name[d->a->rows]);
}

static void put_counts(const facts *f, const weir_direction *d)
{
    char key[64];
    for (int c = WEIR_POSITIVE; c >= (d->classes ? WEIR_NEGATIVE : WEIR_POSITIVE); c--)
        for (int side = 0; side < (d->classes ? WEIR_BOTH_SIDES : WEIR_HELD_OUT); side++) {
            const char *class = d->classes ? class_name[c] : "all", *name = d->classes ? side_name[side] : "training";
            snprintf(key, sizeof key, "%s_%s_documents", class, name);
            put_int(f, key, d->docs[c][side]);
            snprintf(key, sizeof key, "%s_%s_rows", class, name);
            put_int(f, key, d->rows[c][side]);
        }
}

static void put_scores(const facts *f, const weir_direction *d)
{
    char key[64];
    for (int side = 0; side < WEIR_BOTH_SIDES; side++) {
        snprintf(key, sizeof key, "%s_accuracy", side_name[side]);
        put_real(f, key, d->score[side].accuracy);
        snprintf(key, sizeof key, "%s_auc", side_name[side]);
        put_real(f, key, d->score[side].auc);
    }
    put_real(f, "threshold", d->threshold);
    put_real(f, "held_out", d->a->held_out);
    put_int(f, "seed", d->a->seed);
}

void weir_direction_facts(const weir_direction *d, weir_jsonw *w, bool text)
{
    const facts f = {w, text};
    put_text(&f, "method", method_name[d->a->method]);
    put_text(&f, "hook", d->hook->name);
    put_int(&f, "layer", d->hook->layer);
    put_int(&f, "width", d->n);
    put_text(&f, "model", d->model);
    put_text(&f, "fingerprint", d->fingerprint);
    put_source(&f, d);
    put_counts(&f, d);
    put_real(&f, "norm", d->norm);
    if (d->classes)
        put_scores(&f, d);
    if (d->a->method == WEIR_DIRECTION_PCA) {
        put_text(&f, "of", d->pairs ? "pairs" : "rows");
        put_list(&f, "variance", d->variance, d->k);
        put_real(&f, "total_variance", d->total);
    }
    if (d->a->method == WEIR_DIRECTION_PROBE) {
        put_real(&f, "l2", d->a->l2);
        put_real(&f, "loss", d->loss);
        put_int(&f, "steps", d->steps);
    }
}

/* --- text */

static void show_sides(const weir_direction *d)
{
    printf("%-10s %10s %10s %10s %10s\n", "", "positive", "negative", "accuracy", "AUC");
    for (int side = 0; side < WEIR_BOTH_SIDES; side++) {
        printf("%-10s %10lld %10lld", side ? "held out" : "training", (long long)d->rows[WEIR_POSITIVE][side],
               (long long)d->rows[WEIR_NEGATIVE][side]);
        if (isnan(d->score[side].accuracy))
            printf(" %10s %10s\n", "-", "-");
        else
            printf(" %10.4f %10.4f\n", d->score[side].accuracy, d->score[side].auc);
    }
}

static void show_components(const weir_direction *d)
{
    printf("%-10s %12s %10s\n", "component", "variance", "share");
    for (int64_t i = 0; i < d->k; i++)
        printf("%-10lld %12.6g %10.4f\n", (long long)i, d->variance[i], d->variance[i] / d->total);
}

static void show_text(const weir_direction *d)
{
    printf("%s of ", method_name[d->a->method]);
    weir_put_printable(stdout, d->hook->name, 0);
    printf(", %lld wide: ", (long long)d->n);
    if (d->classes)
        printf("length %.6g; positive where direction . row > %.6g\n", d->norm, d->threshold);
    else
        printf("%lld rows\n", (long long)d->rows[WEIR_POSITIVE][WEIR_TRAINING]);
    if (d->classes)
        show_sides(d);
    if (d->a->method == WEIR_DIRECTION_PCA)
        show_components(d);
}

static void show_json(const weir_direction *d)
{
    weir_jsonw w;
    weir_jsonw_init(&w, stdout);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "file", d->a->path);
    weir_direction_facts(d, &w, false);
    weir_jsonw_end(&w);
    putchar('\n');
}

void weir_direction_show(const weir_direction *d)
{
    if (d->a->out.json)
        show_json(d);
    else
        show_text(d);
}
