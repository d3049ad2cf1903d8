/* cli/provenance.h: where a result comes from: which model was run on which text, and how; what stands at the head of
 * every output, so that two can be compared. */
#ifndef WEIR_CLI_PROVENANCE_H
#define WEIR_CLI_PROVENANCE_H

#include "session.h"

/* Texts are borrowed, and never NULL but where said. */
typedef struct weir_provenance {
    const char *model, *fingerprint, *tokenizer; /* name; hex; fingerprint, or "" where there is none */
    const char *source;                          /* the text's name: a file, "arguments", ... or the dump's path */
    const char *text;                            /* JSON: what the text was (cli/identity.h); NULL: not known */
    const char *interventions;                   /* JSON: edits and interventions; NULL: none */
    bool bos;
    int64_t ctx, stride; /* tokens of a window, and from one to the next; 0: not known */
} weir_provenance;

/* Where such texts stand. */
typedef struct weir_provenance_room {
    char fingerprint[65], source[400];
    char *text, *interventions;
} weir_provenance_room;

/* Of a session's run over text, behind weir_session_run. Returns an exit code; an error has been said. */
int weir_provenance_of_text(weir_provenance *p, weir_provenance_room *room, const weir_session *s);
/* Of a dump, and the session's model that goes with it, whose fingerprint stands in room. Borrows r and path. Returns an
 * exit code; an error has been said. */
int weir_provenance_of_dump(weir_provenance *p, weir_provenance_room *room, const weir_session *s, weir_dump_reader *r,
                            const char *path);
void weir_provenance_free(weir_provenance_room *room);

/* Keys of an object: "weir", "model", "fingerprint", "tokenizer". */
void weir_provenance_put_model(weir_jsonw *w, const weir_provenance *p);
/* Those, then "input", "source", "bos", "ctx", "stride", "interventions". */
void weir_provenance_put(weir_jsonw *w, const weir_provenance *p);

#endif
