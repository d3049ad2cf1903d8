#include "common.h"

#include <stdlib.h>
#include <string.h>

#define KERNELS "best|ref|avx2|avx512"

static const weir_opt model_opts[] = {
    {"model", 'm', NULL, WEIR_OPT_STR, "PATH", 0, 0, NULL,
     "Hugging Face directory or .gguf file; without it $WEIR_MODEL, else the small model brook that weir brings along",
     offsetof(weir_model_args, path)},
};
const weir_opt_group weir_opts_model = {"Model", model_opts, sizeof model_opts / sizeof *model_opts};

static const weir_opt run_opts[] = {
    {"threads", 't', NULL, WEIR_OPT_INT, "N", 0, 4096, "0",
     "threads; 0: all processors. The results do not depend on it", offsetof(weir_run_args, threads)},
    {"kernel", 0, NULL, WEIR_OPT_CHOICE, KERNELS, 0, 0, "best", "instruction set. The results do not depend on it",
     offsetof(weir_run_args, kernel)},
    {"memory", 0, NULL, WEIR_OPT_BYTES, "BYTES", 1, 0, NULL,
     "bytes for rows and packed weights; K, M or G may follow. Layers that find no room are packed again in each "
     "pass. Refused if one layer alone finds none", offsetof(weir_run_args, memory)},
    {"batch", 0, NULL, WEIR_OPT_INT, "ROWS", 1, 1 << 20, "512",
     "rows of one forward pass. More need more memory; the results do not depend on it",
     offsetof(weir_run_args, batch)},
};
const weir_opt_group weir_opts_run = {"Running", run_opts, sizeof run_opts / sizeof *run_opts};
const weir_opt_group weir_opts_run_here = {"Running", run_opts, 3};
const weir_opt_group weir_opts_processor = {"Running", run_opts, 2};

static const weir_opt text_opts[] = {
    {"file", 'f', NULL, WEIR_OPT_LIST, "PATH", 0, 0, NULL, "read text or JSONL, .gz or not; - is standard input",
     offsetof(weir_text_args, files)},
    {"docs", 0, NULL, WEIR_OPT_STR, "line|blank|file|SEP", 0, 0, "line",
     "what a document of a text is: a line, a block between blank lines, a file, or what stands between lines equal to "
     "SEP",
     offsetof(weir_text_args, docs)},
    {"jsonl", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "records are JSON, whatever the file's name (implied by --field)", offsetof(weir_text_args, jsonl)},
    {"field", 0, NULL, WEIR_OPT_STR, "NAME", 0, 0, NULL,
     "JSONL: the field that holds the text (without it \"text\", with --ids \"ids\"); other scalar fields are kept",
     offsetof(weir_text_args, field)},
    {"shard", 0, NULL, WEIR_OPT_STR, "I/N", 0, 0, NULL,
     "only the I-th of N blocks of documents, of about equal size, I from 0 to N-1: N runs, on any machines, make the "
     "whole: weir merge joins their dumps, neuron-top --merge its results, logit-lens --merge those of --corpus",
     offsetof(weir_text_args, shard)},
    {"chat", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "a document is a message to the model: its own chat template goes round it, up to where the answer begins. JSONL: "
     "the field (without --field \"messages\") is a message, or a list of {\"role\", \"content\"}",
     offsetof(weir_text_args, chat)},
    {"system", 0, NULL, WEIR_OPT_STR, "TEXT", 0, 0, NULL, "with --chat, the message of the system before it",
     offsetof(weir_text_args, system)},
};
const weir_opt_group weir_opts_text = {"Text", text_opts, sizeof text_opts / sizeof *text_opts};

static const weir_opt row_opts[] = {
    {"ids", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "the text is token ids, not words", offsetof(weir_row_args, ids)},
    {"bos", 0, NULL, WEIR_OPT_CHOICE, "auto|yes|no", 0, 0, "auto",
     "begin documents and windows with the BOS token; auto: as the tokenizer says", offsetof(weir_row_args, bos)},
    {"ctx", 0, NULL, WEIR_OPT_INT, "N", 1, 0, NULL,
     "tokens of a window, BOS counted; without it the model's context. Longer documents are run window by window",
     offsetof(weir_row_args, ctx)},
    {"stride", 0, NULL, WEIR_OPT_INT, "S", 1, 0, NULL,
     "tokens of text from one window to the next; without it windows do not overlap. Tokens that only give context are "
     "not recorded again",
     offsetof(weir_row_args, stride)},
    {"max-tokens", 0, NULL, WEIR_OPT_INT, "N", 1, 0, NULL, "stop after N tokens, BOS counted",
     offsetof(weir_row_args, max_tokens)},
    {"positions", 0, NULL, WEIR_OPT_STR, "WHICH", 0, 0, "all",
     "rows to keep of each document: all, last, -4:, 0:8, 3, or @FIELD of JSONL: a span [begin, end) in bytes of the "
     "text, a list of spans, or a string that the text holds once",
     offsetof(weir_row_args, positions)},
};
const weir_opt_group weir_opts_rows = {"Tokens and rows", row_opts, sizeof row_opts / sizeof *row_opts};

static const weir_opt out_opts[] = {
    {"json", 'j', NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "results as JSON on standard output",
     offsetof(weir_out_args, json)},
    {"quiet", 'q', NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "no remarks and no progress, only errors",
     offsetof(weir_out_args, quiet)},
};
const weir_opt_group weir_opts_out = {"Output", out_opts, sizeof out_opts / sizeof *out_opts};

const char *weir_kernel_name(const weir_run_args *a)
{
    static const char *const name[] = {NULL, "ref", "avx2", "avx512"}; /* in the order of KERNELS */
    return name[a->kernel];
}

const char *weir_model_path(const weir_model_args *a, char *buf, size_t n, weir_err *err)
{
    const char *env = getenv("WEIR_MODEL");
    if (a->path)
        return a->path;
    if (env && *env)
        return env;
    return weir_brook_path(buf, n, err);
}

bool weir_cli_given(const weir_cli *cli, const char *name)
{
    return weir_opt_given(cli->tool->options, cli->given, name);
}

bool weir_cli_has(const weir_cli *cli, const char *name)
{
    for (const weir_opt_use *use = cli->tool->options; use->group; use++)
        for (int i = 0; i < use->group->n; i++)
            if (strcmp(use->group->opt[i].name, name) == 0)
                return true;
    return false;
}

char *weir_command_line(const weir_cli *cli)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./:,@%";
    for (int i = 0; i < cli->argc; i++) {
        const char *a = cli->argv[i];
        const char *slash = i == 0 ? strrchr(a, '/') : NULL;
        a = slash ? slash + 1 : a; /* where the program lies is nobody's business */
        fputs(i ? " " : "", f);
        if (*a && strspn(a, plain) == strlen(a)) {
            fputs(a, f);
            continue;
        }
        fputc('\'', f);
        for (; *a; a++)
            *a == '\'' ? fputs("'\\''", f) : fputc(*a, f);
        fputc('\'', f);
    }
    bool bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad) {
        free(text);
        return NULL;
    }
    return text;
}
