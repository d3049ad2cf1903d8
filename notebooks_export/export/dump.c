/* Dumps as kinds open them: the file, and what it is in a few words. */
#include <stdlib.h>
#include <string.h>

#include "cli/changes.h"
#include "cli/from.h"
#include "cli/say.h"
#include "kind.h"

int weir_nb_tell_changes(weir_nb *nb, const char *json)
{
    char *words = json ? weir_changes_words(json) : NULL;
    if (words && *words)
        weir_nb_tell(nb, "changed by", "%s", words);
    const bool ok = words != NULL;
    free(words);
    return ok ? WEIR_EXIT_OK : weir_nb_no_memory(nb);
}

int weir_nb_open_dump(weir_nb *nb, weir_dump_reader **r)
{
    weir_err err = {0};
    *r = NULL;
    if (weir_dump_open(r, weir_nb_path(nb), &err) != WEIR_OK)
        return weir_cli_fail_at(weir_nb_cli(nb), weir_nb_path(nb), &err);
    weir_nb_tell(nb, "model", "%s", weir_from_attr(*r, "model", "one without a name"));
    const int64_t rows = weir_dump_rows(*r), docs = weir_dump_n_docs(*r);
    const int hooks = weir_dump_n_hooks(*r);
    weir_nb_tell(nb, "holds", "%lld token%s of %lld document%s at %d hook point%s", (long long)rows, weir_nb_s(rows),
                 (long long)docs, weir_nb_s(docs), hooks, weir_nb_s(hooks));
    if (!weir_dump_is_complete(*r))
        weir_nb_tell(nb, "not complete", "the run that wrote it has not ended: the rows that all hooks have are shown");
    weir_from_note_incomplete(weir_nb_cli(nb), *r, weir_nb_path(nb));
    char *changes = weir_from_changes(*r);
    const int code = weir_nb_tell_changes(nb, changes);
    free(changes);
    return code;
}
