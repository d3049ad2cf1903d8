/* cli/complete.h: completion for shells, made from the tables that parse the command line.
 *
 * A script has two parts: tables (each tool's options, with what their values are) and an engine that reads them,
 * complete.bash and complete.zsh beside this file. What a value is, is told from its word in --help:
 *
 *     auto|yes|no             these words; those in capitals and digits ("SEP", "N") stand for something else
 *     SITES, SITE,...         short names of hook points, with commas: those that the option's help names
 *     NAMES                   hook points of the model on the command line
 *     SEL=FILE, SEL=FACTOR    a hook point, then a file or anything
 *     NAME[:ARGS]             a hook, then its arguments
 *     FILE.h5, DUMP.h5        files with this ending
 *     FILE, PATH, RECORDS     any file
 *     DIR                     a directory
 */
#ifndef WEIR_CLI_COMPLETE_H
#define WEIR_CLI_COMPLETE_H

#include "tool.h"

typedef enum weir_offer_kind {
    WEIR_OFFER_FLAG,  /* no value */
    WEIR_OFFER_TEXT,  /* nothing can be offered */
    WEIR_OFFER_WORDS, /* one of words */
    WEIR_OFFER_LIST,  /* words with commas */
    WEIR_OFFER_FILE,  /* words: endings, "h5"; none: any */
    WEIR_OFFER_DIR,
    WEIR_OFFER_POINTS,   /* hook points with commas */
    WEIR_OFFER_SELECTOR, /* a hook point; words: what may follow = */
    WEIR_OFFER_HOOK
} weir_offer_kind;

typedef struct weir_offer {
    weir_offer_kind kind;
    char words[512]; /* separated by blanks */
} weir_offer;

/* What an option's value, or a tool's operands, can be. */
weir_offer weir_offer_of(const weir_opt *o);
weir_offer weir_offer_operands(const weir_tool *t);
/* The name of a kind in the tables of the scripts: "file". */
const char *weir_offer_name(weir_offer_kind kind);

/* Each name that `o` makes senseless on the same command line: its own, unless it may be repeated, and those that rules
 * exclude; "-l --layer --layers". At most n bytes. */
void weir_offer_against(char *out, size_t n, const weir_tool *t, const weir_opt *o);

/* Calls `put` for each tool, and for each command of a tool with its parent. */
void weir_offer_tools(FILE *out, void (*put)(FILE *out, const weir_tool *parent, const weir_tool *t));

void weir_complete_bash(FILE *out);
void weir_complete_zsh(FILE *out);

#endif
