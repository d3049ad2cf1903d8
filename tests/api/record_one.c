/* Runs one sentence through a model and records the stream behind every block:   record_one [MODEL [OUT.h5]] */
#include <weir/weir.h>

enum { MAX_TOKENS = 64 };

/* The text's ids, with the BOS token in front where the tokenizer asks for it. Returns how many, or -1. */
static int64_t encode(const char *model, const char *text, size_t len, int32_t ids[MAX_TOKENS], weir_err *err)
{
    weir_tokenizer *tok = NULL;
    weir_tokens t = {0};
    int64_t n = 0;
    if (weir_tokenizer_open(&tok, model, NULL, err) == WEIR_OK && weir_tokenizer_encode(tok, text, len, &t, err) == WEIR_OK) {
        if (weir_tokenizer_adds_bos(tok))
            ids[n++] = weir_tokenizer_bos(tok);
        for (int64_t i = 0; i < t.n && n < MAX_TOKENS; i++)
            ids[n++] = t.id[i];
    }
    weir_tokens_free(&t);
    weir_tokenizer_free(tok);
    return err->code == WEIR_OK ? n : -1;
}

static weir_status record(const char *path, const char *out, weir_err *err)
{
    static const char text[] = "Among the places of Colorado is Boulder.";
    weir_model *model = NULL;
    weir_run *run = NULL;
    int32_t ids[MAX_TOKENS];
    char brook[4096], args[4200];
    if (!path && !(path = weir_brook_path(brook, sizeof brook, err)))
        return err->code;
    int64_t n = encode(path, text, sizeof text - 1, ids, err);
    if (n < 0)
        return err->code;
    snprintf(args, sizeof args, "%s=resid_post", out);
    weir_seq sequence = {.ids = ids, .n = n, .slot = -1};
    weir_status status = weir_model_open(&model, path, NULL, err);
    if (status == WEIR_OK)
        status = weir_run_new(&run, model, NULL, err);
    if (status == WEIR_OK)
        status = weir_run_hook(run, weir_hook_class_find("record"), args, err);
    if (status == WEIR_OK)
        status = weir_run_forward(run, &sequence, 1, 0, err);
    if (status == WEIR_OK)
        status = weir_run_finish(run, stdout, err);
    weir_run_free(run);
    weir_model_free(model);
    return status;
}

int main(int argc, char **argv)
{
    weir_err err = {0};
    char line[1024];
    if (record(argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : "record_one.h5", &err) == WEIR_OK)
        return 0;
    fprintf(stderr, "%s\n", weir_err_line(&err, line, sizeof line));
    return 1;
}
