/* Asks the library for gradients, for tests in other languages: grad_probe MODEL OUT < request
 *
 * The request, a line each, in this order where it matters:
 *   threads N    kernel NAME    memory N    rows N    slots N
 *   edit LAYER MATRIX R FILE     an update (MATRIX a number of weir_matrix): u [r,in], then v [r,out]
 *   hook NAME ARGS               attached in this order
 *   want POINT | want *          where gradients are asked for
 *   hear SELECTOR                a hook that listens to gradients, e.g. blocks.0.hook_mlp_out_grad
 *   prefix SLOT ID ID ...        a pass of its own before, into a slot
 *   from LAYER FILE              the pass begins there with the stream [rows,C] in the file
 *   seq SLOT ID ID ...           a sequence of the pass (SLOT -1: none)
 *   term KIND ROW TOKEN WEIGHT [FILE]   KIND nll, logit or kl; FILE: log q [V]
 *   seed POINT FILE              [rows,width]
 * OUT: for each answer a line "NAME ROWS WIDTH" and then ROWS * WIDTH floats: value:POINT (what the pass had),
 * grad:POINT, heard:POINT; first "loss 1 1" and "values 1 N" as doubles. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/grad.h>

enum { MOST = 256 };

typedef struct probe {
    weir_model *model;
    weir_run *run;
    weir_grad *grad;
    const weir_point *point;
    int64_t n;
    weir_run_options o;
    weir_grad_options g;
    weir_seq seq[MOST], prefix[MOST];
    weir_loss_term term[MOST];
    weir_grad_seed seed[MOST];
    int64_t n_seq, n_prefix, n_term, n_seed, from;
    char *hook[MOST], *hear, *stream;
    weir_update update[MOST];
    int64_t n_updates;
    weir_edit *edit;
    const weir_edit *stack[1];
    int n_hooks;
    bool *want;
    float **value, **dst, **heard;
    int64_t *width;
    bool listening;
    weir_selector *selector;
} probe;

static void *must(void *p)
{
    if (!p) {
        fprintf(stderr, "grad_probe: out of memory\n");
        exit(1);
    }
    return p;
}

static void check(weir_status st, const weir_err *err)
{
    if (!st)
        return;
    fprintf(stderr, "%d %s\n", st, err->msg);
    exit(3);
}

static float *read_floats(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(1);
    }
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    rewind(f);
    float *x = must(malloc((size_t)n + 1));
    if (fread(x, 1, (size_t)n, f) != (size_t)n)
        exit(1);
    fclose(f);
    return x;
}

/* --- a hook that keeps what the pass had, and the gradients that it is told */

static weir_want wants(void *self, const weir_point *p)
{
    const probe *b = self;
    if (p->grad)
        return b->selector && weir_selector_matches(b->selector, p) ? WEIR_READ : WEIR_NONE;
    return b->want[p - b->point] ? WEIR_READ : WEIR_NONE;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    probe *b = self;
    const size_t bytes = (size_t)(v->rows->n * v->width) * sizeof(float);
    const int64_t i = v->point - b->point;
    (void)err;
    if (!b->listening)
        return WEIR_OK;
    float **to = v->point->grad ? &b->heard[i - b->n] : &b->value[i];
    *to = must(realloc(*to, bytes));
    memcpy(*to, v->data, bytes);
    b->width[v->point->grad ? i - b->n : i] = v->width;
    return WEIR_OK;
}

static const weir_hook_class listener = {
    .struct_size = sizeof listener, .abi = WEIR_HOOK_ABI, .flags = WEIR_HOOK_GRADIENTS, .name = "probe", .wants = wants, .on_value = on_value};

/* --- the request */

static int64_t read_ids(char *text, int32_t *ids)
{
    int64_t n = 0;
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        ids[n++] = atoi(word);
    return n;
}

static weir_seq read_seq(char *text)
{
    char *rest;
    int32_t *ids = must(malloc(strlen(text) * sizeof *ids));
    const int slot = (int)strtol(text, &rest, 10);
    return (weir_seq){.ids = ids, .slot = slot, .n = read_ids(rest, ids)};
}

static const weir_point *point_of(probe *b, const char *name)
{
    const weir_point *p = weir_model_point(b->model, name);
    if (!p) {
        fprintf(stderr, "grad_probe: no point %s\n", name);
        exit(1);
    }
    return p;
}

static weir_loss_term read_term(const char *text)
{
    char kind[16] = "", file[1024] = "";
    long long row, token;
    float weight;
    if (sscanf(text, "%15s %lld %lld %f %1023s", kind, &row, &token, &weight, file) < 4)
        exit(1);
    weir_loss_term t = {.row = row, .token = (int32_t)token, .weight = weight};
    t.kind = strcmp(kind, "nll") == 0 ? WEIR_LOSS_NLL : strcmp(kind, "kl") == 0 ? WEIR_LOSS_KL : WEIR_LOSS_LOGIT;
    t.log_q = *file ? read_floats(file) : NULL;
    return t;
}

static weir_update read_update(const probe *b, const char *text)
{
    char file[1024] = "";
    long long layer, r;
    int matrix;
    int64_t in, out;
    if (sscanf(text, "%lld %d %lld %1023s", &layer, &matrix, &r, file) != 4)
        exit(1);
    weir_matrix_shape(b->model, (weir_matrix)matrix, &in, &out);
    const float *x = read_floats(file);
    return (weir_update){.layer = layer, .matrix = (weir_matrix)matrix, .r = r, .u = x, .v = x + r * in};
}

static void want(probe *b, const char *name)
{
    for (int64_t i = 0; i < b->n; i++)
        b->want[i] |= strcmp(name, "*") == 0 || &b->point[i] == point_of(b, name);
}

static void read_line(probe *b, char *line)
{
    char *rest = strchr(line, ' ');
    *rest++ = 0;
    if (strcmp(line, "threads") == 0)
        b->o.threads = atoi(rest);
    else if (strcmp(line, "kernel") == 0)
        b->o.kernel = must(strdup(rest));
    else if (strcmp(line, "memory") == 0)
        b->g.memory = atoll(rest);
    else if (strcmp(line, "rows") == 0)
        b->o.max_rows = atoll(rest);
    else if (strcmp(line, "slots") == 0)
        b->o.slots = atoi(rest);
    else if (strcmp(line, "edit") == 0)
        b->update[b->n_updates++] = read_update(b, rest);
    else if (strcmp(line, "hook") == 0)
        b->hook[b->n_hooks++] = must(strdup(rest));
    else if (strcmp(line, "hear") == 0)
        b->hear = must(strdup(rest));
    else if (strcmp(line, "want") == 0)
        want(b, rest);
    else if (strcmp(line, "prefix") == 0)
        b->prefix[b->n_prefix++] = read_seq(rest);
    else if (strcmp(line, "seq") == 0)
        b->seq[b->n_seq++] = read_seq(rest);
    else if (strcmp(line, "term") == 0)
        b->term[b->n_term++] = read_term(rest);
    else if (strcmp(line, "from") == 0) {
        b->from = strtoll(rest, &rest, 10);
        b->stream = must(strdup(rest + 1));
    } else if (strcmp(line, "seed") == 0) {
        char *file = strchr(rest, ' ');
        *file++ = 0;
        b->seed[b->n_seed++] = (weir_grad_seed){point_of(b, rest), read_floats(file)};
    } else {
        fprintf(stderr, "grad_probe: what is %s?\n", line);
        exit(1);
    }
}

/* --- the pass and the way back */

static void make_run(probe *b)
{
    weir_err err = {0};
    b->o.backward = true;
    if (b->n_updates) {
        check(weir_edit_new(&b->edit, b->model, b->update, b->n_updates, &err), &err);
        b->stack[0] = b->edit;
        b->o.edits = b->stack;
        b->o.n_edits = 1;
    }
    check(weir_run_new(&b->run, b->model, &b->o, &err), &err);
    for (int i = 0; i < b->n_hooks; i++) {
        char *args = strchr(b->hook[i], ' ');
        *args++ = 0;
        check(weir_run_hook(b->run, weir_hook_class_find(b->hook[i]), args, &err), &err);
    }
    if (b->hear)
        check(weir_selector_build(&b->selector, b->model, b->hear, NULL, NULL, &err), &err);
    check(weir_run_hook_object(b->run, &listener, b, &err), &err);
    check(weir_grad_new(&b->grad, b->run, &b->g, &err), &err);
    for (int64_t i = 0; i < b->n; i++) {
        const weir_point *p = &b->point[i];
        if (!b->want[i])
            continue;
        b->dst[i] = must(calloc((size_t)(b->o.max_rows * p->width), sizeof(float)));
        check(weir_grad_to(b->grad, p, b->dst[i], &err), &err);
    }
    check(weir_run_prepare(b->run, WEIR_FINAL, &err), &err);
}

static int64_t forward(probe *b)
{
    weir_err err = {0};
    int64_t rows = 0;
    for (int64_t i = 0; i < b->n_prefix; i++)
        check(weir_run_forward(b->run, &b->prefix[i], 1, WEIR_FINAL, &err), &err);
    for (int64_t i = 0; i < b->n_seq; i++)
        rows += b->seq[i].n;
    b->listening = true;
    if (!b->stream) {
        check(weir_run_forward(b->run, b->seq, b->n_seq, WEIR_FINAL, &err), &err);
        return rows;
    }
    const int64_t c = weir_model_info_of(b->model)->C;
    float *x = read_floats(b->stream);
    memcpy(weir_run_stream(b->run), x, (size_t)(rows * c) * sizeof *x);
    free(x);
    check(weir_run_forward_from(b->run, b->seq, b->n_seq, b->from, WEIR_FINAL, &err), &err);
    return rows;
}

static void put(FILE *f, const char *kind, const char *name, const float *x, int64_t rows, int64_t width)
{
    if (!x)
        return;
    fprintf(f, "%s%s %lld %lld\n", kind, name, (long long)rows, (long long)width);
    fwrite(x, sizeof *x, (size_t)(rows * width), f);
}

static void answer(probe *b, const char *path, int64_t rows, double loss, const double *value)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        exit(1);
    fprintf(f, "loss 1 1\n");
    fwrite(&loss, sizeof loss, 1, f);
    fprintf(f, "values 1 %lld\n", (long long)b->n_term);
    fwrite(value, sizeof *value, (size_t)b->n_term, f);
    for (int64_t i = 0; i < b->n; i++) {
        int64_t width = b->width[i] ? b->width[i] : b->point[i].width;
        put(f, "value:", b->point[i].name, b->value[i], rows, width);
        put(f, "grad:", b->point[i].name, b->dst[i], rows, width);
        put(f, "heard:", b->point[i].name, b->heard[i], rows, width);
    }
    if (fclose(f))
        exit(1);
}

static void release(probe *b)
{
    weir_grad_free(b->grad);
    weir_run_free(b->run);
    weir_edit_free(b->edit);
    weir_selector_free(b->selector);
    for (int64_t i = 0; i < b->n; i++) {
        free(b->value[i]);
        free(b->dst[i]);
        free(b->heard[i]);
    }
    weir_model_free(b->model);
}

int main(int argc, char **argv)
{
    static probe b;
    weir_err err = {0};
    char *line = NULL;
    size_t room = 0;
    double loss = 0, value[MOST] = {0}, again = 0;
    if (argc != 3)
        return 2;
    check(weir_model_open(&b.model, argv[1], NULL, &err), &err);
    b.n = weir_model_points(b.model, &b.point);
    b.want = must(calloc((size_t)b.n, sizeof *b.want));
    b.value = must(calloc((size_t)b.n, sizeof *b.value));
    b.dst = must(calloc((size_t)b.n, sizeof *b.dst));
    b.heard = must(calloc((size_t)b.n, sizeof *b.heard));
    b.width = must(calloc((size_t)b.n, sizeof *b.width));
    weir_run_options_init(&b.o);
    weir_grad_options_init(&b.g);
    b.o.max_rows = 64;
    for (ssize_t n; (n = getline(&line, &room, stdin)) > 0;) {
        line[n - 1] = 0;
        read_line(&b, line);
    }
    free(line);
    make_run(&b);
    const int64_t rows = forward(&b);
    for (int twice = 0; twice < 2; twice++) /* the second walk finds everything as the first did */
        check(weir_grad_backward(b.grad, b.term, b.n_term, b.seed, b.n_seed, twice ? &again : &loss, value, &err),
              &err);
    if (memcmp(&loss, &again, sizeof loss) != 0)
        return 4;
    answer(&b, argv[2], rows, loss, value);
    release(&b);
    return 0;
}
