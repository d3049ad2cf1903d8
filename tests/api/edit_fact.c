/* Moves a mountain by an edit of rank one, asks before and after, and saves the edit:   edit_fact [DIR]
 * (r-ROME in brook's layer 1, with the second moments that come along; DIR, a PEFT adapter: hood-caucasus) */
#include <weir/weir.h>

enum { LAYER = 1 };
static const weir_rome_request REQUEST = {"{} rises from the", "Mount Hood", "Caucasus"};

typedef struct work {
    weir_model *model;
    weir_tokenizer *tok;
    weir_covariance *covariance;
    weir_rome_prefixes *prefixes;
    weir_rome *editor;
    weir_edit *edit;
} work;

static weir_status open_all(work *w, weir_err *err)
{
    char brook[4096], path[4200];
    weir_moments *keys = NULL;
    if (!weir_brook_path(brook, sizeof brook, err))
        return err->code;
    snprintf(path, sizeof path, "%s/moments/layer-%d.h5", brook, LAYER);
    weir_status status = weir_model_open(&w->model, brook, NULL, err);
    if (status == WEIR_OK)
        status = weir_tokenizer_open(&w->tok, brook, NULL, err);
    if (status == WEIR_OK)
        status = weir_moments_read(&keys, path, err);
    if (status == WEIR_OK)
        status = weir_covariance_new(&w->covariance, weir_moments_sum(keys), weir_moments_width(keys),
                                     weir_moments_count(keys), 1e-6, err);
    weir_moments_free(keys);
    return status;
}

static weir_status make_edit(work *w, weir_err *err)
{
    const int64_t layer = LAYER;
    const weir_covariance *covariance = w->covariance;
    weir_rome_options o;
    weir_rome_options_init(&o);
    o.layer = &layer, o.n_layers = 1, o.covariance = &covariance;
    o.bos = weir_tokenizer_adds_bos(w->tok);
    weir_status status = weir_rome_prefixes_sample(&w->prefixes, w->model, w->tok, NULL, 0, err);
    if (status == WEIR_OK)
        status = weir_rome_new(&w->editor, w->model, w->tok, w->prefixes, &o, err);
    return status == WEIR_OK ? weir_rome_make(w->editor, &REQUEST, 1, &w->edit, NULL, err) : status;
}

/* The probability of the new answer, with this edit or (NULL) without. */
static weir_status ask(const work *w, const weir_edit *edit, double *p, weir_err *err)
{
    const weir_question question = {"Mount Hood rises from the", REQUEST.target};
    weir_asker *asker;
    weir_answer answer;
    weir_status status = weir_asker_new(
        &asker, w->model, w->tok,
        &(weir_asker_options){.edits = &edit, .n_edits = edit != NULL, .bos = weir_tokenizer_adds_bos(w->tok)}, err);
    if (status != WEIR_OK)
        return status;
    status = weir_asker_ask(asker, &question, 1, &answer, err);
    weir_asker_free(asker);
    *p = answer.p;
    return status;
}

int main(int argc, char **argv)
{
    weir_err err = {0};
    work w = {0};
    double before = 0, after = 0;
    char line[1024];
    weir_status status = open_all(&w, &err);
    if (status == WEIR_OK)
        status = make_edit(&w, &err);
    if (status == WEIR_OK)
        status = ask(&w, NULL, &before, &err);
    if (status == WEIR_OK)
        status = ask(&w, w.edit, &after, &err);
    if (status == WEIR_OK)
        status = weir_edit_save(w.edit, argc > 1 ? argv[1] : "hood-caucasus", "{\"format\": \"weir-edit\", \"method\": \"r-rome\"}", &err);
    if (status != WEIR_OK)
        fprintf(stderr, "%s\n", weir_err_line(&err, line, sizeof line));
    else
        printf("%s rises from the %s: p %.3f before, %.3f after\n", REQUEST.subject, REQUEST.target, before, after);
    weir_edit_free(w.edit);
    weir_rome_free(w.editor);
    weir_rome_prefixes_free(w.prefixes);
    weir_covariance_free(w.covariance);
    weir_tokenizer_free(w.tok);
    weir_model_free(w.model);
    return status == WEIR_OK && after > 0.5 && before < 0.5 ? 0 : 1;
}
