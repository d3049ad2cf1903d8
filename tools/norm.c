/* weir norm: LayerNorm and RMSNorm of a vector, side by side, and what tells them apart. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/output.h"
#include "cli/reals.h"
#include "cli/say.h"

enum { FORMAT_TEXT, FORMAT_TSV };
enum { LAYER, RMS, KINDS };
static const char *const kind_name[KINDS] = {"layernorm", "rmsnorm"};

typedef struct norm_args {
    const char *x, *gain, *bias;
    double eps, shift, scale;
    bool gemma;
    int kernel, format;
    weir_out_args out;
    const char *path;
    bool force;
} norm_args;

/* What one kind makes of a vector. */
typedef struct normed {
    weir_normed s, exact_s;
    float *y;               /* [n] by the kernels */
    double *exact;          /* [n] in double precision */
    double rms;             /* of y */
    double cosine;          /* of x and y */
    double shifted, scaled; /* the largest change of y where x + shift, x * scale is normed instead */
} normed;

typedef struct norming {
    weir_cli *cli;
    const norm_args *a;
    weir_reals x, gain, bias;
    float *fx, *fgain, *fbias;
    normed of[KINDS];
    double identity, identity_exact; /* LayerNorm without bias against RMSNorm of x - mean: the largest difference */
    bool same_in_company;            /* a row has the same bits alone and among other rows */
} norming;

#define AT(field) offsetof(norm_args, field)
static const weir_opt own_opts[] = {
    {"x", 'x', NULL, WEIR_OPT_STR, "X,...", 0, 0, NULL, "the vector", AT(x)},
    {"gain", 0, NULL, WEIR_OPT_STR, "X,...", 0, 0, NULL, "a gain for each component (gamma); without it 1", AT(gain)},
    {"bias", 0, NULL, WEIR_OPT_STR, "X,...", 0, 0, NULL, "LayerNorm's bias (beta); without it 0", AT(bias)},
    {"eps", 0, NULL, WEIR_OPT_REAL, "X", 0, 0, "1e-5", "added under the square root", AT(eps)},
    {"gemma", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "RMSNorm multiplies by 1 + gain, as Gemma's files mean it",
     AT(gemma)},
    {"shift", 0, NULL, WEIR_OPT_REAL, "X", -1000000, 0, "1", "also norm x + X: what does a mean do?", AT(shift)},
    {"scale", 0, NULL, WEIR_OPT_REAL, "X", -1000000, 0, "2", "also norm X x: what does a length do?", AT(scale)},
    {"kernel", 0, NULL, WEIR_OPT_CHOICE, "best|ref|avx2|avx512", 0, 0, "best",
     "instruction set. The results do not depend on it", AT(kernel)},
    {"format", 0, NULL, WEIR_OPT_CHOICE, "text|tsv", 0, 0, "text", "form of the result", AT(format)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", AT(path)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace FILE, whatever it is", AT(force)},
};
static const weir_opt_group own_group = {"Norm and result", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_use options[] = {{&own_group, 0}, {&weir_opts_out, AT(out)}, {NULL, 0}};
static const weir_opt_rule rules[] = {
    {"json", WEIR_OPT_EXCLUDES, "format"}, {"gemma", WEIR_OPT_NEEDS, "gain"}, {NULL, WEIR_OPT_NEEDS, NULL}};

/* --- the numbers */

static int read_vector(norming *t, const char *option, const char *text, weir_reals *v, float **f)
{
    if (!text)
        return WEIR_EXIT_OK;
    int code = weir_cli_reals(t->cli, option, text, v);
    if (code == WEIR_EXIT_OK)
        code = weir_cli_floats(t->cli, option, v, f);
    if (code == WEIR_EXIT_OK && v->n != t->x.n)
        code = weir_cli_usage(t->cli, "%s has %lld numbers and --x %lld", option, (long long)v->n, (long long)t->x.n);
    return code;
}

static int read_vectors(norming *t)
{
    if (!t->a->x)
        return weir_cli_usage(t->cli, "which vector? --x 2,-1,0.5");
    int code = read_vector(t, "--x", t->a->x, &t->x, &t->fx);
    if (code == WEIR_EXIT_OK)
        code = read_vector(t, "--gain", t->a->gain, &t->gain, &t->fgain);
    if (code == WEIR_EXIT_OK)
        code = read_vector(t, "--bias", t->a->bias, &t->bias, &t->fbias);
    return code;
}

static weir_norming norm_of(const norming *t, int kind)
{
    return (weir_norming){.rms = kind == RMS,
                          .eps = t->a->eps,
                          .offset = t->a->gemma && kind == RMS,
                          .gain = t->fgain,
                          .bias = kind == LAYER ? t->fbias : NULL};
}

/* The larger of two differences; one that is no number stays: fmax would hide it, and show 0 for what overflowed. */
static double worse(double most, double difference)
{
    return isnan(most) || isnan(difference) ? NAN : fmax(most, difference);
}

static double apart(const float *a, const float *b, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = worse(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

static double cosine(const double *x, const float *y, int64_t n)
{
    double xy = 0, xx = 0, yy = 0;
    for (int64_t i = 0; i < n; i++) {
        xy += x[i] * (double)y[i];
        xx += x[i] * x[i];
        yy += (double)y[i] * (double)y[i];
    }
    return xy / sqrt(xx * yy);
}

/* A run of the kernels over `rows` rows; where it fails, the kernel's name is to blame. */
static int run(const norming *t, const weir_norming *f, float *out, weir_normed *s, const float *x, int64_t rows)
{
    weir_err err = {0};
    const weir_run_args r = {.kernel = t->a->kernel};
    if (weir_norming_run(f, out, s, x, rows, t->x.n, weir_kernel_name(&r), &err) != WEIR_OK)
        return weir_cli_bad_argument(t->cli, "--kernel", &err);
    return WEIR_EXIT_OK;
}

/* Of a x + b instead of x: the largest change. room: 2 n floats. */
static int change(const norming *t, int kind, double a, double b, float *room, double *out)
{
    const int64_t n = t->x.n;
    const weir_norming f = norm_of(t, kind);
    for (int64_t i = 0; i < n; i++)
        room[i] = (float)(a * t->x.v[i] + b);
    int code = run(t, &f, room + n, NULL, room, 1);
    *out = apart(room + n, t->of[kind].y, n);
    return code;
}

static int take(norming *t, int kind, float *room)
{
    const int64_t n = t->x.n;
    normed *o = &t->of[kind];
    const weir_norming f = norm_of(t, kind);
    int code = run(t, &f, o->y, &o->s, t->fx, 1);
    o->exact_s = weir_norming_exact(&f, o->exact, t->x.v, n);
    for (int64_t i = 0; i < n; i++)
        o->rms += (double)o->y[i] * (double)o->y[i] / (double)n;
    o->rms = sqrt(o->rms);
    o->cosine = cosine(t->x.v, o->y, n);
    if (code == WEIR_EXIT_OK)
        code = change(t, kind, 1, t->a->shift, room, &o->shifted);
    if (code == WEIR_EXIT_OK)
        code = change(t, kind, t->a->scale, 0, room, &o->scaled);
    return code;
}

/* LayerNorm with beta 0 is RMSNorm of the mean-centred vector, with plain gains both. */
static int compare(norming *t, float *room, double *room64)
{
    const int64_t n = t->x.n;
    const weir_norming layer = {.eps = t->a->eps, .gain = t->fgain},
                       rms = {.rms = true, .eps = t->a->eps, .gain = t->fgain};
    double mean = 0;
    for (int64_t i = 0; i < n; i++)
        mean += t->x.v[i] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        room[i] = (float)(t->x.v[i] - mean);
        room64[i] = t->x.v[i] - mean;
    }
    int code = run(t, &layer, room + n, NULL, t->fx, 1);
    if (code == WEIR_EXIT_OK)
        code = run(t, &rms, room + 2 * n, NULL, room, 1);
    t->identity = apart(room + n, room + 2 * n, n);
    weir_norming_exact(&rms, room64, room64, n);
    weir_norming_exact(&layer, room64 + n, t->x.v, n);
    for (int64_t i = 0; i < n; i++)
        t->identity_exact = worse(t->identity_exact, fabs(room64[i] - room64[n + i]));
    return code;
}

/* The vector between two others: does its norm know of them? */
static int keep_company(norming *t, float *room)
{
    const int64_t n = t->x.n;
    int code = WEIR_EXIT_OK;
    t->same_in_company = true;
    for (int64_t i = 0; i < n; i++) {
        room[i] = (float)(1 + i);
        room[n + i] = t->fx[i];
        room[2 * n + i] = -1000 * t->fx[i];
    }
    for (int kind = 0; kind < KINDS && code == WEIR_EXIT_OK; kind++) {
        const weir_norming f = norm_of(t, kind);
        code = run(t, &f, room + 3 * n, NULL, room, 3);
        t->same_in_company &= memcmp(room + 4 * n, t->of[kind].y, (size_t)n * sizeof *room) == 0;
    }
    return code;
}

static int work(norming *t)
{
    const size_t n = (size_t)t->x.n;
    float *room = calloc(6 * n, sizeof *room);
    double *room64 = calloc(2 * n, sizeof *room64);
    int code = room && room64 ? WEIR_EXIT_OK : weir_cli_error(t->cli, "out of memory");
    for (int kind = 0; kind < KINDS && code == WEIR_EXIT_OK; kind++) {
        t->of[kind].y = calloc(n, sizeof *t->of[kind].y);
        t->of[kind].exact = calloc(n, sizeof *t->of[kind].exact);
        code = t->of[kind].y && t->of[kind].exact ? take(t, kind, room) : weir_cli_error(t->cli, "out of memory");
    }
    if (code == WEIR_EXIT_OK)
        code = compare(t, room, room64);
    if (code == WEIR_EXIT_OK)
        code = keep_company(t, room);
    free(room);
    free(room64);
    return code;
}

/* --- the result */

/* A vector of zeros has no direction. */
static void put_cosine(double x, FILE *out)
{
    if (isnan(x))
        fprintf(out, " %13s", "-");
    else
        fprintf(out, " %13.9g", x);
}

static void put_text(const norming *t, FILE *out)
{
    const normed *l = &t->of[LAYER], *r = &t->of[RMS];
    fprintf(out, "%13s %13s %13s\n", "x", kind_name[LAYER], kind_name[RMS]);
    for (int64_t i = 0; i < t->x.n; i++)
        fprintf(out, "%13.9g %13.9g %13.9g\n", t->x.v[i], (double)l->y[i], (double)r->y[i]);
    fprintf(out, "\n%-26s %13.9g %13s\n", "mean that is taken off", l->s.mean, "-");
    fprintf(out, "%-26s %13.9g %13.9g\n", "divided by", l->s.scale, r->s.scale);
    fprintf(out, "%-26s %13.9g %13.9g\n", "RMS of the result", l->rms, r->rms);
    fprintf(out, "%-26s", "cosine with x");
    put_cosine(l->cosine, out);
    put_cosine(r->cosine, out);
    fputc('\n', out);
    fprintf(out, "change if x + %-12g %13.3g %13.3g\n", t->a->shift, l->shifted, r->shifted);
    fprintf(out, "change if x * %-12g %13.3g %13.3g\n", t->a->scale, l->scaled, r->scaled);
    fprintf(out, "\nLayerNorm without bias = RMSNorm of x - mean: within %.3g (double precision: %.3g)\n", t->identity,
            t->identity_exact);
    fprintf(out, "among other rows: %s\n", t->same_in_company ? "the same bits" : "different bits");
}

static void put_tsv(const norming *t, FILE *out)
{
    fputs("i\tx\tlayernorm\trmsnorm\tlayernorm_exact\trmsnorm_exact\n", out);
    for (int64_t i = 0; i < t->x.n; i++)
        fprintf(out, "%lld\t%.17g\t%.9g\t%.9g\t%.17g\t%.17g\n", (long long)i, t->x.v[i], (double)t->of[LAYER].y[i],
                (double)t->of[RMS].y[i], t->of[LAYER].exact[i], t->of[RMS].exact[i]);
}

static void put_kind_json(const norming *t, int kind, weir_jsonw *w)
{
    const normed *o = &t->of[kind];
    weir_jsonw_key(w, kind_name[kind]);
    weir_jsonw_object(w);
    weir_jsonw_key_double(w, "mean", o->s.mean);
    weir_jsonw_key_double(w, "scale", o->s.scale);
    weir_jsonw_key_double(w, "scale_exact", o->exact_s.scale);
    weir_jsonw_key_double(w, "rms", o->rms);
    weir_jsonw_key_double(w, "cosine", o->cosine);
    weir_jsonw_key_double(w, "change_shifted", o->shifted);
    weir_jsonw_key_double(w, "change_scaled", o->scaled);
    weir_jsonw_key(w, "out");
    weir_jsonw_array(w);
    for (int64_t i = 0; i < t->x.n; i++)
        weir_jsonw_float(w, o->y[i]);
    weir_jsonw_end(w);
    weir_jsonw_key(w, "exact");
    weir_jsonw_array(w);
    for (int64_t i = 0; i < t->x.n; i++)
        weir_jsonw_double(w, o->exact[i]);
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

static void put_json(const norming *t, FILE *out)
{
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "format", "weir-norm");
    weir_jsonw_key_double(&w, "eps", t->a->eps);
    weir_jsonw_key_bool(&w, "gemma", t->a->gemma);
    for (int kind = 0; kind < KINDS; kind++)
        put_kind_json(t, kind, &w);
    weir_jsonw_key_double(&w, "centred_rmsnorm_difference", t->identity);
    weir_jsonw_key_double(&w, "centred_rmsnorm_difference_exact", t->identity_exact);
    weir_jsonw_key_bool(&w, "same_bits_among_other_rows", t->same_in_company);
    weir_jsonw_end(&w);
    fputc('\n', out);
}

static int put(void *ctx, FILE *out)
{
    const norming *t = ctx;
    if (t->a->out.json)
        put_json(t, out);
    else if (t->a->format == FORMAT_TSV)
        put_tsv(t, out);
    else
        put_text(t, out);
    return WEIR_EXIT_OK;
}

static int run_tool(weir_cli *cli, void *args)
{
    const norm_args *a = args;
    static const weir_output_mark json = {"{\"format\":\"weir-norm\"", NULL},
                                  forms[] = {
                                      [FORMAT_TEXT] = {"", "layernorm"}, [FORMAT_TSV] = {"i\tx\tlayernorm", NULL}};
    const weir_output_mark *m = a->out.json ? &json : &forms[a->format];
    const weir_output_file file = {.path = a->path, .begin = m->begin, .holds = m->holds, .force = a->force};
    norming t = {.cli = cli, .a = a};
    cli->quiet = a->out.quiet;
    if (cli->n_operands)
        return weir_cli_usage(cli, "the vector is --x: what is \"%s\"?", cli->operand[0]);
    int code = weir_output_free(cli, &file);
    if (code == WEIR_EXIT_OK)
        code = read_vectors(&t);
    if (code == WEIR_EXIT_OK)
        code = work(&t);
    if (code == WEIR_EXIT_OK)
        code = weir_output_put(cli, &file, put, &t);
    for (int kind = 0; kind < KINDS; kind++) {
        free(t.of[kind].y);
        free(t.of[kind].exact);
    }
    free(t.x.v);
    free(t.gain.v);
    free(t.bias.v);
    free(t.fx);
    free(t.fgain);
    free(t.fbias);
    return code;
}

const weir_tool weir_tool_norm = {
    .name = "norm",
    .summary = "LayerNorm and RMSNorm of a vector, side by side",
    .operands = "",
    .about = "Norms a vector by the kernels that models run with, and in double precision. Shows what is taken off and "
             "divided by, the direction (cosine), what a shift and a scaling of the vector change, that LayerNorm "
             "without bias is RMSNorm of x minus its mean, and that a row's norm does not depend on other rows.",
    .example = "weir norm --x 2,-1,0.5,3\n"
               "weir norm --x 2,-1,0.5,3 --gain 1,2,1,0.5 --bias 0,0,1,0 --eps 1e-6\n"
               "weir norm --x 2,-1,0.5,3 --gain 0.1,0,-0.2,0 --gemma --format tsv",
    .options = options,
    .rules = rules,
    .args_size = sizeof(norm_args),
    .run = run_tool,
};
