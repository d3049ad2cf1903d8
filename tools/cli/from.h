/* cli/from.h: a dump of weir trace instead of a text: --from DUMP.h5, or the operand; and what every tool that reads one
 * asks of it. Functions that return an exit code have said the error. */
#ifndef WEIR_CLI_FROM_H
#define WEIR_CLI_FROM_H

#include "positions.h"
#include "session.h"

bool weir_from_is_hdf5(const char *path);
/* Which dump the command line names: from (the option's value, or NULL), or the only operand, if it is an HDF5 file.
 * *dump = NULL: none, it is a text. Returns an exit code; an error has been said. */
int weir_from_dump(const weir_cli *cli, const char *from, const char **dump);
/* With a dump: refuses options about a run over text, which it can no longer follow. */
int weir_from_check(const weir_cli *cli, const char *dump);

/* Opens the dump, and reads --positions, which must not need a text. What was opened is the caller's, also after an
 * error. */
int weir_from_open(weir_dump_reader **r, weir_positions *positions, const weir_session *s, const char *path);
/* Remarks on a dump of a run that did not end. */
void weir_from_note_incomplete(const weir_cli *cli, weir_dump_reader *r, const char *path);
/* Opens the session's model, which must be the one that made the dump, unless forced. fingerprint: the model's. */
int weir_from_model(weir_session *s, weir_dump_reader *r, const char *path, bool force, char fingerprint[65]);
/* Tokens have names where the model has a tokenizer; that it has none is a remark. */
int weir_from_tokenizer(weir_session *s);

/* Which part of a text a dump holds. */
typedef struct weir_from_part {
    int64_t shard, shards; /* shards 0: all of it */
    int64_t first_doc;     /* number of its first document in the whole text */
} weir_from_part;
weir_status weir_from_part_of(weir_dump_reader *r, weir_from_part *out, weir_err *err);
/* Do the positions of document `doc` ascend from 0, and stay where memory for a whole document can be had? A damaged
 * file may hold anything. */
weir_status weir_from_positions(const int64_t *pos, int64_t n, int64_t doc, weir_err *err);

/* A root attribute, or `other` where there is none; a number, or 0. */
const char *weir_from_attr(weir_dump_reader *r, const char *name, const char *other);
/* What made the dump's values others than the model's own: its edits and interventions in one JSON array, as
 * weir_attach_json has them. To be freed; NULL: out of memory. */
char *weir_from_changes(weir_dump_reader *r);
/* Was it recorded with edits of the weights? */
bool weir_from_edited(weir_dump_reader *r);
int64_t weir_from_attr_int(weir_dump_reader *r, const char *name);

#endif
