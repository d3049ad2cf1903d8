/* cli/session.h: a model that runs over a text: what every such tool opens, in the order in which mistakes on the
 * command line are best told: model, (the tool's own selectors), text, run.
 *
 *     weir_session s = {.cli = cli, .a = &args->session};
 *     int code = weir_session_model(&s);
 *     if (code == WEIR_EXIT_OK) code = weir_session_text(&s);
 *     if (code == WEIR_EXIT_OK) code = weir_session_run(&s);
 *     ... attach more hooks to s.run, weir_run_prepare, weir_feed_next(s.feed, ...) ...
 *     weir_session_close(&s);
 */
#ifndef WEIR_CLI_SESSION_H
#define WEIR_CLI_SESSION_H

#include "attach.h"
#include "feed.h"
#include "input.h"

/* The values of the option groups that a session reads. */
typedef struct weir_session_args {
    weir_model_args model;
    weir_text_args text;
    weir_row_args rows;
    weir_edit_args edit;
    weir_attach_args attach;
    weir_run_args run;
    weir_out_args out;
} weir_session_args;

/* Those groups in a tool's list; `at`: offset of its weir_session_args. */
#define WEIR_SESSION_OPTIONS(at)                                                                                        \
    {&weir_opts_model, (at) + offsetof(weir_session_args, model)},                                                      \
        {&weir_opts_text, (at) + offsetof(weir_session_args, text)},                                                    \
        {&weir_opts_rows, (at) + offsetof(weir_session_args, rows)},                                                    \
        {&weir_opts_edit, (at) + offsetof(weir_session_args, edit)},                                                    \
        {&weir_opts_attach, (at) + offsetof(weir_session_args, attach)},                                                \
        {&weir_opts_run, (at) + offsetof(weir_session_args, run)},                                                      \
    {                                                                                                                   \
        &weir_opts_out, (at) + offsetof(weir_session_args, out)                                                         \
    }

typedef struct weir_session {
    weir_cli *cli;
    const weir_session_args *a;
    char brook[1100]; /* backing store of model_path */
    const char *model_path;
    weir_model *model;
    const weir_model_info *info;
    weir_chat *chat;     /* --chat; NULL: text is text */
    weir_tokenizer *tok; /* NULL: the text is ids and the model has none */
    weir_input in;
    weir_feed *feed;
    weir_edits edits; /* --edit */
    weir_run *run;
    weir_attach attach; /* the hooks and interventions of the command line */
    int64_t ctx, stride; /* of windows, as weir_feed_stride has it */
    bool bos;            /* windows begin with BOS */
    int slots;           /* set before weir_session_run: sequences that the run keeps, and how long they get; */
    int64_t max_len;     /* 0: as the text needs */
    bool whole;          /* set before weir_session_text: a window goes through in one pass; a longer one is refused */
    bool by_layer;       /* set before weir_session_run: the run goes layer by layer (cli/by_layer.h) */
    const weir_activation *act; /* set before weir_session_run: in place of the model's; NULL: the model's own */
    const char *loss;    /* set before weir_session_text: what is differentiated: windows are whole, and the run has a
                            way back; NULL: it only goes forward */
} weir_session;

/* Each returns an exit code; an error has been said. What was opened is closed by weir_session_close in every case. */
int weir_session_model(weir_session *s);
int weir_session_text(weir_session *s);
/* The run has the edits, hooks and interventions of the command line, in their order, and is not prepared. */
int weir_session_run(weir_session *s);
/* Another run over the same batches, without any edit or hook: the model as it is. The caller frees it. */
int weir_session_plain_run(const weir_session *s, weir_run **out);
/* Plans and allocates; hooks are attached by now. */
int weir_session_prepare(weir_session *s, int flags);
void weir_session_close(weir_session *s);

#endif
