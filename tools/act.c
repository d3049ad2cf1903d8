/* weir act: activations by themselves: value, slope, lowest place, gated products, pictures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "act/act.h"
#include "cli/output.h"
#include "cli/say.h"

#define AT(field) offsetof(weir_act_args, field)
static const weir_opt own_opts[] = {
    {"at", 0, NULL, WEIR_OPT_STR, "X,...", 0, 0, NULL, "the functions at these places, instead of a table", AT(at)},
    {"from", 0, NULL, WEIR_OPT_REAL, "X", -1000000, 0, "-4", "the table and the picture begin here", AT(from)},
    {"to", 0, NULL, WEIR_OPT_REAL, "X", -1000000, 0, "4", "and end here", AT(to)},
    {"step", 0, NULL, WEIR_OPT_REAL, "X", 0, 0, "0.5", "between the table's places", AT(step)},
    {"beta", 0, NULL, WEIR_OPT_REAL, "B", 0, 0, "1", "of swish, x sigmoid(B x)", AT(beta)},
    {"gate", 0, NULL, WEIR_OPT_STR, "X,...", 0, 0, NULL,
     "what the gate projection gives: the product f(gate) * up, component by component", AT(gate)},
    {"up", 0, NULL, WEIR_OPT_STR, "X,...", 0, 0, NULL, "what the up projection gives, as many numbers", AT(up)},
    {"against", 0, NULL, WEIR_OPT_STR, "NAME", 0, 0, NULL,
     "another function: the largest difference from it between --from and --to", AT(against)},
    {"kernel", 0, NULL, WEIR_OPT_CHOICE, "best|ref|avx2|avx512", 0, 0, "best",
     "instruction set. The results do not depend on it", AT(kernel)},
};
static const weir_opt result_opts[] = {
    {"format", 0, NULL, WEIR_OPT_CHOICE, "text|tsv", 0, 0, "text", "form of the result", AT(format)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", AT(path)},
    {"svg", 0, NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "draw the functions and their slopes into this file", AT(svg)},
    {"width", 'w', NULL, WEIR_OPT_INT, "N", 20, 4096, NULL,
     "columns of the picture in text; without it the terminal's, at most 80", AT(width)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace FILE, whatever it is", AT(force)},
};
static const weir_opt_group own_group = {"Functions", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_group result_group = {"Result", result_opts, sizeof result_opts / sizeof *result_opts};
static const weir_opt_use options[] = {{&own_group, 0}, {&result_group, 0}, {&weir_opts_out, AT(out)}, {NULL, 0}};
static const weir_opt_rule rules[] = {
    {"json", WEIR_OPT_EXCLUDES, "format"},  {"gate", WEIR_OPT_NEEDS, "up"},          {"up", WEIR_OPT_NEEDS, "gate"},
    {"at", WEIR_OPT_EXCLUDES, "step"},      {"gate", WEIR_OPT_EXCLUDES, "step"}, /* no table of places ... */
    {"against", WEIR_OPT_EXCLUDES, "step"}, {"width", WEIR_OPT_EXCLUDES, "at"},  /* ... and no picture */
    {"width", WEIR_OPT_EXCLUDES, "gate"},   {"width", WEIR_OPT_EXCLUDES, "against"}, {NULL, WEIR_OPT_NEEDS, NULL}};

static int find(const weir_acting *t, const char *name, const weir_activation **out)
{
    const char *names[WEIR_ACT_MOST];
    const int n = weir_activation_count();
    *out = weir_activation_named(name);
    if (*out)
        return WEIR_EXIT_OK;
    for (int i = 0; i < n && i < WEIR_ACT_MOST; i++)
        names[i] = weir_activation_at(i)->name;
    const char *near = weir_nearest(name, names, n < WEIR_ACT_MOST ? n : WEIR_ACT_MOST);
    return weir_cli_usage(t->cli, "no activation is called \"%s\"%s%s%s: weir act lists them", name,
                          near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static int choose(weir_acting *t)
{
    const int named = t->cli->n_operands;
    int code = WEIR_EXIT_OK;
    t->listed = named == 0 && !t->a->at && !t->a->gate && !t->a->against;
    if (t->listed && (weir_cli_given(t->cli, "step") || weir_cli_given(t->cli, "width")))
        return weir_cli_usage(t->cli, "--step and --width are of a function's table and picture: name a function");
    if (named > WEIR_ACT_MOST)
        return weir_cli_usage(t->cli, "more than %d functions", WEIR_ACT_MOST);
    t->n = named ? named : weir_activation_count();
    for (int i = 0; i < t->n && code == WEIR_EXIT_OK; i++) {
        if (named)
            code = find(t, t->cli->operand[i], &t->curve[i].f);
        else
            t->curve[i].f = weir_activation_at(i);
    }
    if (code == WEIR_EXIT_OK && t->a->against)
        code = find(t, t->a->against, &t->against);
    for (int i = 0; i < t->n && code == WEIR_EXIT_OK; i++)
        t->curve[i].lowest = weir_activation_lowest(t->curve[i].f, t->a->beta);
    return code;
}

/* The places of the table. */
static int place(weir_acting *t)
{
    const weir_act_args *a = t->a;
    if (!(a->to > a->from))
        return weir_cli_usage(t->cli, "--from %g to --to %g: the second must be larger", a->from, a->to);
    if (a->at)
        return weir_cli_reals(t->cli, "--at", a->at, &t->at);
    if (!(a->step > 0) || (a->to - a->from) / a->step > 100000)
        return weir_cli_usage(t->cli, "--step %g: it must be above 0, and for at most 100,000 places", a->step);
    t->at.n = (int64_t)((a->to - a->from) / a->step * (1 + 1e-12)) + 1;
    t->at.v = calloc((size_t)t->at.n, sizeof *t->at.v);
    if (!t->at.v)
        return weir_cli_error(t->cli, "out of memory");
    for (int64_t i = 0; i < t->at.n; i++)
        t->at.v[i] = a->from + (double)i * a->step;
    return WEIR_EXIT_OK;
}

static int read_products(weir_acting *t)
{
    int code = WEIR_EXIT_OK;
    if (!t->a->gate)
        return code;
    code = weir_cli_reals(t->cli, "--gate", t->a->gate, &t->gate);
    if (code == WEIR_EXIT_OK)
        code = weir_cli_reals(t->cli, "--up", t->a->up, &t->up);
    if (code == WEIR_EXIT_OK && t->gate.n != t->up.n)
        code = weir_cli_usage(t->cli, "--gate has %lld numbers and --up %lld: they go in pairs", (long long)t->gate.n,
                              (long long)t->up.n);
    return code;
}

/* --- the work */

static const char *kernel_of(const weir_acting *t)
{
    const weir_run_args r = {.kernel = t->a->kernel};
    return weir_kernel_name(&r);
}

static int take_points(weir_acting *t, weir_act_curve *c)
{
    weir_err err = {0};
    const int64_t n = t->at.n;
    float *x = NULL, *y = calloc((size_t)n, 2 * sizeof *y);
    c->point = calloc((size_t)n, sizeof *c->point);
    int code = y && c->point ? WEIR_EXIT_OK : weir_cli_error(t->cli, "out of memory");
    if (code == WEIR_EXIT_OK)
        code = weir_cli_floats(t->cli, t->a->at ? "--at" : "--from", &t->at, &x);
    if (code == WEIR_EXIT_OK && c->f->runs &&
        (weir_activation_run(c->f, y, x, NULL, n, kernel_of(t), &err) != WEIR_OK ||
         weir_activation_run_slope(c->f, y + n, x, n, kernel_of(t), &err) != WEIR_OK))
        code = weir_cli_bad_argument(t->cli, "--kernel", &err);
    for (int64_t i = 0; code == WEIR_EXIT_OK && i < n; i++)
        c->point[i] = (weir_act_point){.x = t->at.v[i],
                                       .y = weir_activation_value(c->f, t->a->beta, t->at.v[i]),
                                       .slope = weir_activation_slope(c->f, t->a->beta, t->at.v[i]),
                                       .kernel = c->f->runs ? y[i] : NAN,
                                       .kernel_slope = c->f->runs ? y[n + i] : NAN};
    free(x);
    free(y);
    return code;
}

static int take_products(weir_acting *t, weir_act_curve *c)
{
    weir_err err = {0};
    const int64_t n = t->gate.n;
    float *gate = NULL, *up = NULL;
    c->product = calloc((size_t)n, sizeof *c->product);
    int code = c->product ? WEIR_EXIT_OK : weir_cli_error(t->cli, "out of memory");
    if (code == WEIR_EXIT_OK)
        code = weir_cli_floats(t->cli, "--gate", &t->gate, &gate);
    if (code == WEIR_EXIT_OK)
        code = weir_cli_floats(t->cli, "--up", &t->up, &up);
    if (code == WEIR_EXIT_OK && c->f->runs &&
        weir_activation_run(c->f, gate, gate, up, n, kernel_of(t), &err) != WEIR_OK)
        code = weir_cli_bad_argument(t->cli, "--kernel", &err);
    for (int64_t i = 0; code == WEIR_EXIT_OK && i < n; i++) {
        const double g = t->gate.v[i], u = t->up.v[i];
        c->product[i] = (weir_act_product){.gate = g,
                                           .up = u,
                                           .opened = weir_activation_value(c->f, t->a->beta, g),
                                           .y = weir_activation_gate(c->f, t->a->beta, g, u),
                                           .kernel = c->f->runs ? gate[i] : NAN};
    }
    free(gate);
    free(up);
    return code;
}

static double apart(const weir_acting *t, const weir_act_curve *c, double x)
{
    return fabs(weir_activation_value(c->f, t->a->beta, x) - weir_activation_value(t->against, t->a->beta, x));
}

/* The largest difference: on a grid, then between the neighbours of the best place, where it has one hump. */
static void compare(const weir_acting *t, weir_act_curve *c)
{
    enum { GRID = 20000 };
    const double h = (t->a->to - t->a->from) / GRID;
    double best = t->a->from;
    for (int i = 1; i <= GRID; i++)
        if (apart(t, c, t->a->from + i * h) > apart(t, c, best))
            best = t->a->from + i * h;
    double low = fmax(best - h, t->a->from), high = fmin(best + h, t->a->to);
    for (int i = 0; i < 100; i++) {
        const double a = low + (high - low) / 3, b = high - (high - low) / 3;
        if (apart(t, c, a) < apart(t, c, b))
            low = a;
        else
            high = b;
    }
    c->apart_at = 0.5 * (low + high);
    c->apart = apart(t, c, c->apart_at);
}

static int work(weir_acting *t)
{
    int code = WEIR_EXIT_OK;
    for (int i = 0; i < t->n && code == WEIR_EXIT_OK; i++) {
        code = take_points(t, &t->curve[i]);
        if (code == WEIR_EXIT_OK && t->a->gate)
            code = take_products(t, &t->curve[i]);
        if (t->against)
            compare(t, &t->curve[i]);
    }
    return code;
}

static weir_output_file file_of(const weir_act_args *a)
{
    static const weir_output_mark json = {"{\"format\":\"weir-act\"", NULL},
                                  forms[] = {[WEIR_ACT_TEXT] = {"", "lowest"}, [WEIR_ACT_TSV] = {"function\t", NULL}};
    const weir_output_mark *m = a->out.json ? &json : &forms[a->format];
    return (weir_output_file){.path = a->path, .begin = m->begin, .holds = m->holds, .force = a->force};
}

/* TSV is one table, of one kind of lines. */
static int check_table(weir_cli *cli, const weir_act_args *a)
{
    if (a->format == WEIR_ACT_TSV && (a->at != NULL) + (a->gate != NULL) + (a->against != NULL) > 1)
        return weir_cli_usage(cli, "--format tsv is one table: of --at, of --gate and --up, or of --against");
    return WEIR_EXIT_OK;
}

static int run_tool(weir_cli *cli, void *args)
{
    const weir_act_args *a = args;
    const weir_output_file file = file_of(a),
                           svg = {.path = a->svg, .begin = "<?xml", .holds = "weir act", .force = a->force};
    weir_acting t = {.cli = cli, .a = a};
    cli->quiet = a->out.quiet;
    int code = check_table(cli, a);
    if (code == WEIR_EXIT_OK)
        code = weir_output_free(cli, &file);
    if (code == WEIR_EXIT_OK && a->svg)
        code = weir_output_free(cli, &svg);
    if (code == WEIR_EXIT_OK)
        code = choose(&t);
    if (code == WEIR_EXIT_OK)
        code = place(&t);
    if (code == WEIR_EXIT_OK)
        code = read_products(&t);
    if (code == WEIR_EXIT_OK)
        code = work(&t);
    if (code == WEIR_EXIT_OK)
        code = weir_output_put(cli, &file, weir_act_put, &t);
    if (code == WEIR_EXIT_OK && a->svg)
        code = weir_output_put(cli, &svg, weir_act_put_svg, &t);
    for (int i = 0; i < t.n && i < WEIR_ACT_MOST; i++) {
        free(t.curve[i].point);
        free(t.curve[i].product);
    }
    free(t.at.v);
    free(t.gate.v);
    free(t.up.v);
    return code;
}

const weir_tool weir_tool_act = {
    .name = "act",
    .summary = "activation functions: value, slope, lowest place, gated products, pictures",
    .operands = "[FUNCTION...]",
    .about =
        "Without a name: a list of the functions. With names: each one's lowest place, a picture and a table, in "
        "double precision and, where models that weir runs have it, by the kernels that they run with. With --gate "
        "and --up: what a gated MLP hands to its down projection. Names of papers and of config.json are "
        "understood: swiglu, geglu, reglu, glu, gelu_new, ...",
    .example = "weir act\n"
               "weir act silu --from -3 --to 3\n"
               "weir act silu --gate 2,-2,0.5 --up 1.5,3,-1\n"
               "weir act gelu --against gelu_tanh\n"
               "weir act relu gelu silu --svg lineage.svg",
    .options = options,
    .rules = rules,
    .args_size = sizeof(weir_act_args),
    .run = run_tool,
};
