/* Runs one sentence through a model and records the stream behind every block:   record_one [MODEL [OUT.h5]] */
#include <weir/weir.h>

static weir_status record(const char *path, const char *out, weir_err *err)
{
    static const char text[] = "Among the places of Colorado is Boulder.";
    weir_model *model = NULL;
    weir_tokenizer *tok = NULL;
    weir_run *run = NULL;
    weir_tokens tokens = {0};
    char brook[4096], args[4200];
    weir_status status = WEIR_OK;
    if (!path && !(path = weir_brook_path(brook, sizeof brook, err)))
        return err->code;
    if ((status = weir_model_open(&model, path, NULL, err)) != WEIR_OK ||
        (status = weir_tokenizer_open(&tok, path, NULL, err)) != WEIR_OK ||
        (status = weir_tokenizer_encode(tok, text, sizeof text - 1, &tokens, err)) != WEIR_OK ||
        (status = weir_run_new(&run, model, NULL, err)) != WEIR_OK)
        goto done;
    snprintf(args, sizeof args, "%s=resid_post", out);
    if ((status = weir_run_hook(run, weir_hook_class_find("record"), args, err)) != WEIR_OK)
        goto done;
    weir_seq sequence = {.ids = tokens.id, .n = tokens.n, .slot = -1};
    if ((status = weir_run_forward(run, &sequence, 1, 0, err)) == WEIR_OK)
        status = weir_run_finish(run, stdout, err);
done:
    weir_run_free(run);
    weir_tokens_free(&tokens);
    weir_tokenizer_free(tok);
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
