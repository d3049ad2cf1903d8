#include "provenance.h"

#include <stdlib.h>
#include <string.h>

#include "from.h"
#include "identity.h"
#include "say.h"

static const char *or_none(const char *interventions)
{
    return strcmp(interventions, "[]") == 0 ? NULL : interventions;
}

static void put_model(weir_provenance *p, const weir_session *s)
{
    p->model = s->info->name;
    p->tokenizer = s->tok ? weir_tokenizer_fingerprint(s->tok) : "";
}

int weir_provenance_of_text(weir_provenance *p, weir_provenance_room *room, const weir_session *s)
{
    weir_err err = {0};
    if (weir_model_fingerprint(s->model, false, room->fingerprint, &err) != WEIR_OK)
        return weir_cli_fail(s->cli, &err);
    room->text = weir_session_identity(s);
    if (!room->text)
        return WEIR_EXIT_FAILED;
    room->interventions = weir_attach_json(&s->attach);
    if (!room->interventions)
        return weir_cli_error(s->cli, "out of memory");
    weir_input_title(&s->in, room->source, sizeof room->source);
    *p = (weir_provenance){.fingerprint = room->fingerprint,
                           .source = room->source,
                           .text = room->text,
                           .interventions = or_none(room->interventions),
                           .bos = s->bos,
                           .ctx = s->ctx,
                           .stride = s->stride};
    put_model(p, s);
    return WEIR_EXIT_OK;
}

int weir_provenance_of_dump(weir_provenance *p, weir_provenance_room *room, const weir_session *s, weir_dump_reader *r,
                            const char *path)
{
    room->interventions = weir_from_changes(r);
    if (!room->interventions)
        return weir_cli_error(s->cli, "out of memory");
    *p = (weir_provenance){.fingerprint = room->fingerprint,
                           .source = path,
                           .text = weir_dump_attr(r, "run_options"),
                           .interventions = or_none(room->interventions),
                           .bos = strcmp(weir_from_attr(r, "bos", "no"), "yes") == 0,
                           .ctx = weir_from_attr_int(r, "ctx"),
                           .stride = weir_from_attr_int(r, "stride")};
    put_model(p, s);
    return WEIR_EXIT_OK;
}

void weir_provenance_free(weir_provenance_room *room)
{
    free(room->text);
    free(room->interventions);
    *room = (weir_provenance_room){0};
}

void weir_provenance_put_model(weir_jsonw *w, const weir_provenance *p)
{
    weir_jsonw_key_cstr(w, "weir", weir_version());
    weir_jsonw_key_cstr(w, "model", p->model);
    weir_jsonw_key_cstr(w, "fingerprint", p->fingerprint);
    weir_jsonw_key_cstr(w, "tokenizer", p->tokenizer);
}

void weir_provenance_put(weir_jsonw *w, const weir_provenance *p)
{
    weir_provenance_put_model(w, p);
    weir_jsonw_key_cstr(w, "input", p->source);
    weir_jsonw_key(w, "source");
    weir_jsonw_json(w, p->text);
    weir_jsonw_key_bool(w, "bos", p->bos);
    weir_jsonw_key_int(w, "ctx", p->ctx);
    weir_jsonw_key_int(w, "stride", p->stride);
    weir_jsonw_key(w, "interventions");
    weir_jsonw_json(w, p->interventions);
}
