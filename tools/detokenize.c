/* weir detokenize: token ids back to bytes. */
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/say.h"

typedef struct detokenize_args {
    weir_model_args model;
    weir_out_args out;
    bool special, lines;
} detokenize_args;

static const weir_opt own_opts[] = {
    {"special", 's', NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "also write the text of special tokens",
     offsetof(detokenize_args, special)},
    {"lines", 'l', NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "a line of ids is a document: its text is followed by a newline", offsetof(detokenize_args, lines)},
};
static const weir_opt_group own_group = {"Tokens", own_opts, sizeof own_opts / sizeof *own_opts};

static const weir_opt_use options[] = {{&weir_opts_model, offsetof(detokenize_args, model)},
                                       {&own_group, 0},
                                       {&weir_opts_out, offsetof(detokenize_args, out)},
                                       {NULL, 0}};

typedef struct id_list {
    int32_t *id;
    int64_t n, cap;
} id_list;

/* A run of the tool: what stays the same from one list of ids to the next. */
typedef struct detokenizer {
    const weir_cli *cli;
    const detokenize_args *a;
    const weir_tokenizer *tok;
    id_list ids;
    char *text;
    size_t cap;
} detokenizer;

static bool add_id(id_list *l, int32_t id)
{
    if (l->n == l->cap) {
        int64_t cap = l->cap ? 2 * l->cap : 1024;
        int32_t *p = realloc(l->id, (size_t)cap * sizeof *p);
        if (!p)
            return false;
        l->id = p;
        l->cap = cap;
    }
    l->id[l->n++] = id;
    return true;
}

/* Adds the ids in text[n]: white space, commas or brackets between. line: for errors, 0 for an argument. */
static int add_ids(detokenizer *d, const char *text, size_t n, int64_t line)
{
    static const char between[] = " \t\r\n\v\f,[]";
    const char *end = text + n;
    while (text < end) {
        size_t w = 0;
        while (text + w < end && !(text[w] && strchr(between, text[w])))
            w++;
        if (w == 0) {
            text++;
            continue;
        }
        char word[24] = "";
        int64_t id;
        memcpy(word, text, w < sizeof word ? w : sizeof word - 1);
        if (w >= sizeof word || !weir_parse_int(word, &id) || id < 0 || id >= weir_tokenizer_size(d->tok)) {
            if (line)
                return weir_cli_error(d->cli, "stdin: line %lld: \"%s\" is no token id of this vocabulary of %lld",
                                      (long long)line, word, (long long)weir_tokenizer_size(d->tok));
            return weir_cli_usage(d->cli, "\"%s\" is no token id of this vocabulary of %lld", word,
                                  (long long)weir_tokenizer_size(d->tok));
        }
        if (!add_id(&d->ids, (int32_t)id))
            return weir_cli_error(d->cli, "out of memory");
        text += w;
    }
    return WEIR_EXIT_OK;
}

static void print_text(const detokenizer *d, size_t n)
{
    if (!d->a->out.json) {
        fwrite(d->text, 1, n, stdout);
        if (d->a->lines)
            putchar('\n');
        return;
    }
    weir_jsonw w;
    weir_jsonw_init(&w, stdout);
    weir_jsonw_object(&w);
    weir_jsonw_key_int(&w, "tokens", d->ids.n);
    weir_jsonw_key_int(&w, "bytes", (int64_t)n);
    weir_jsonw_key(&w, "text");
    weir_jsonw_str(&w, d->text, n);
    weir_jsonw_end(&w);
    putchar('\n');
}

/* Writes what the ids gathered so far stand for, and forgets them. */
static int write_text(detokenizer *d)
{
    weir_err err = {0};
    size_t n;
    weir_status s = weir_tokenizer_decode(d->tok, d->ids.id, d->ids.n, d->a->special, d->text, d->cap, &n, &err);
    if (s == WEIR_OK && n > d->cap) {
        free(d->text);
        d->cap = n + n / 2;
        d->text = malloc(d->cap);
        if (!d->text)
            return weir_cli_error(d->cli, "out of memory");
        s = weir_tokenizer_decode(d->tok, d->ids.id, d->ids.n, d->a->special, d->text, d->cap, &n, &err);
    }
    if (s != WEIR_OK)
        return weir_cli_fail(d->cli, &err);
    print_text(d, n);
    d->ids.n = 0;
    return WEIR_EXIT_OK;
}

static int from_arguments(detokenizer *d)
{
    for (int i = 0; i < d->cli->n_operands; i++) {
        int code = add_ids(d, d->cli->operand[i], strlen(d->cli->operand[i]), 0);
        if (code != WEIR_EXIT_OK)
            return code;
    }
    return write_text(d);
}

static int from_stdin(detokenizer *d)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    int code = WEIR_EXIT_OK;
    for (int64_t number = 1; code == WEIR_EXIT_OK && (n = getline(&line, &cap, stdin)) >= 0; number++) {
        code = add_ids(d, line, (size_t)n, number);
        if (code == WEIR_EXIT_OK && d->a->lines)
            code = write_text(d);
    }
    free(line);
    if (code == WEIR_EXIT_OK && ferror(stdin))
        return weir_cli_error(d->cli, "cannot read standard input");
    return code == WEIR_EXIT_OK && !d->a->lines ? write_text(d) : code;
}

static int run(weir_cli *cli, void *args)
{
    const detokenize_args *a = args;
    weir_tokenizer *tok = NULL;
    weir_err err = {0};
    char brook[1100];
    cli->quiet = a->out.quiet;
    const char *path = weir_model_path(&a->model, brook, sizeof brook, &err);
    weir_log log = weir_cli_log(cli);
    if (!path || weir_tokenizer_open(&tok, path, &log, &err) != WEIR_OK)
        return weir_cli_fail(cli, &err);
    detokenizer d = {.cli = cli, .a = a, .tok = tok, .text = malloc(4096), .cap = 4096};
    bool args_given = cli->n_operands > 0 && !(cli->n_operands == 1 && strcmp(cli->operand[0], "-") == 0);
    int code = !d.text ? weir_cli_error(cli, "out of memory") : args_given ? from_arguments(&d) : from_stdin(&d);
    free(d.ids.id);
    free(d.text);
    weir_tokenizer_free(tok);
    return code;
}

const weir_tool weir_tool_detokenize = {
    .name = "detokenize",
    .summary = "token ids to text",
    .operands = "[ID... | < ids]",
    .about = "Writes the bytes that the ids stand for, and nothing else: no newline is added. White space, commas or "
             "brackets stand between ids. Special tokens, such as BOS, are left out unless --special is given.",
    .example = "weir tokenize --ids 'Among the places of Colorado is Boulder.' | weir detokenize --lines",
    .options = options,
    .rules = NULL,
    .args_size = sizeof(detokenize_args),
    .run = run,
};
