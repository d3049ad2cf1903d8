#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "output.h"
#include "say.h"

enum { PATIENCE_MS = 2000, SHARDS_MAX = 1000000 };

/* Does standard input hold a byte? Nothing is read. A file, a pipe, a socket and a device each have their own way to
 * tell. */
static bool stdin_has_byte(const struct stat *st)
{
    char c;
    if (S_ISREG(st->st_mode)) {
        off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
        return at >= 0 && pread(STDIN_FILENO, &c, 1, at) == 1;
    }
    if (S_ISCHR(st->st_mode))
        return st->st_rdev != makedev(1, 3); /* /dev/null: the end at once */
    int bytes = 0;
    return ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes > 0;
}

/* Waits until standard input has a byte or has ended; true: it has a byte. */
static bool wait_for_stdin(const weir_cli *cli, const struct stat *st)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    int ready = poll(&p, 1, PATIENCE_MS);
    if (ready == 0)
        weir_cli_note(cli, "waiting for text on standard input");
    while (ready == 0 || (ready < 0 && errno == EINTR))
        ready = poll(&p, 1, -1);
    return stdin_has_byte(st);
}

/* The first bytes of a file that exists, or -1. */
static ssize_t file_start(const char *path, char *buf, size_t n, struct stat *st)
{
    if (stat(path, st) != 0 || !S_ISREG(st->st_mode))
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t got = pread(fd, buf, n, 0);
    close(fd);
    return got;
}

static bool is_hdf5(const char *start, ssize_t n)
{
    return n == 8 && memcmp(start, "\x89HDF\r\n\x1a\n", 8) == 0;
}

/* A text argument that is really a file's name is a slip that must not be recorded as text. */
static int check_text(const weir_cli *cli, const char *text)
{
    char start[8];
    struct stat st;
    ssize_t n = file_start(text, start, sizeof start, &st);
    if (is_hdf5(start, n))
        return weir_cli_usage(cli, "%s is an HDF5 file, not a text to run", text);
    if (n >= 0 && (weir_ends_with(text, ".h5") || weir_ends_with(text, ".h5.part") || weir_ends_with(text, ".hdf5")))
        return weir_cli_usage(cli, "%s is a file that does not begin as HDF5 does: it is damaged, or --file reads it",
                              text);
    if (n >= 0)
        weir_cli_note(cli, "\"%s\" is taken as text; --file %s would read the file of that name", text, text);
    return WEIR_EXIT_OK;
}

/* A dump holds bytes that would run for hours as text. */
static int check_file(const weir_cli *cli, const char *path)
{
    char start[8];
    struct stat st;
    if (is_hdf5(start, file_start(path, start, sizeof start, &st)))
        return weir_cli_usage(cli, "--file %s is an HDF5 file, not a text to run", path);
    return WEIR_EXIT_OK;
}

/* Bytes of the text in plain files, or -1. Files of /proc say that they are empty and are not. */
static int64_t plain_bytes(const weir_docs_options *o)
{
    int64_t sum = 0;
    for (int i = 0; i < o->n_texts; i++)
        sum += (int64_t)strlen(o->texts[i]);
    for (int i = 0; i < o->n_paths; i++) {
        char start[2];
        struct stat st;
        ssize_t n = file_start(o->paths[i], start, sizeof start, &st);
        if (n < 0 || st.st_size == 0 || (n == 2 && memcmp(start, "\x1f\x8b", 2) == 0))
            return -1;
        sum += st.st_size;
    }
    return sum;
}

static void docs_options(weir_docs_options *o, const weir_text_args *text, bool ids)
{
    static const char *const word[] = {"line", "blank", "file"}; /* in the order of weir_docs_split */
    weir_docs_options_init(o);
    o->split = WEIR_DOCS_SEP;
    o->sep = text->docs;
    for (int i = 0; i < 3; i++)
        if (strcmp(text->docs, word[i]) == 0)
            o->split = (weir_docs_split)i;
    o->ids = ids;
    o->field = text->field ? text->field : ids ? "ids" : text->chat ? "messages" : "text";
    o->json_value = text->chat;
    if (text->jsonl || text->field)
        o->format = WEIR_DOCS_JSONL;
}

/* "I/N". */
static int read_shard(weir_docs_options *o, const weir_cli *cli, const char *text)
{
    char first[24];
    size_t n = strcspn(text, "/");
    if (n >= sizeof first || text[n] != '/' ||
        (memcpy(first, text, n), first[n] = 0, !weir_parse_int(first, &o->shard)) ||
        !weir_parse_int(text + n + 1, &o->shards))
        return weir_cli_usage(cli, "--shard %s: write I/N, such as 0/4: the first of four shards", text);
    if (o->shards < 1 || o->shards > SHARDS_MAX)
        return weir_cli_usage(cli, "--shard %s: the number of shards is 1 to %d", text, SHARDS_MAX);
    if (o->shard < 0 || o->shard >= o->shards)
        return weir_cli_usage(cli, "--shard %s: shards are numbered from 0: the last of %lld is %lld/%lld", text,
                              (long long)o->shards, (long long)o->shards - 1, (long long)o->shards);
    return WEIR_EXIT_OK;
}

/* The first line of in->sentences. */
static int use_first_sentence(weir_input *in, const weir_cli *cli, weir_docs_options *o)
{
    size_t room = 0;
    FILE *f = fopen(in->sentences, "r");
    ssize_t n = f ? getline(&in->sentence, &room, f) : -1;
    if (f)
        fclose(f);
    if (n <= 0)
        return weir_cli_error(cli, "cannot read %s", in->sentences);
    in->sentence[strcspn(in->sentence, "\r\n")] = 0;
    in->one_path = in->sentence;
    o->texts = &in->one_path;
    o->n_texts = 1;
    return WEIR_EXIT_OK;
}

/* Brook's own sentences, because nothing else was named. They are words, one a line, whatever the options say about the
 * text. */
static int use_sentences(weir_input *in, const weir_cli *cli, weir_docs_options *o, const char *why)
{
    char dir[1100];
    weir_err err = {0};
    if (o->ids)
        return weir_cli_usage(cli, "--ids: no token ids were given, and %s", why);
    if (!weir_brook_path(dir, sizeof dir, &err))
        return weir_cli_fail(cli, &err);
    snprintf(in->sentences, sizeof in->sentences, "%s/sentences.txt", dir);
    weir_cli_note(cli, "%s, so the text is %sbrook's sentences", why, in->one_sentence ? "the first of " : "");
    *o = (weir_docs_options){.stop = o->stop, .shard = o->shard, .shards = o->shards};
    if (in->one_sentence)
        return use_first_sentence(in, cli, o);
    in->one_path = in->sentences;
    o->paths = &in->one_path;
    o->n_paths = 1;
    return WEIR_EXIT_OK;
}

/* Standard input, or what stands in for it. named: the user wrote -. */
static int use_stdin(weir_input *in, const weir_cli *cli, weir_docs_options *o, bool named)
{
    struct stat st;
    if (fstat(STDIN_FILENO, &st) != 0)
        return use_sentences(in, cli, o, "there is no standard input");
    if (!named && isatty(STDIN_FILENO))
        return use_sentences(in, cli, o, "no text was given");
    if (!wait_for_stdin(cli, &st))
        return use_sentences(in, cli, o, "standard input is empty");
    if (o->shards)
        return weir_cli_usage(cli, "--shard reads its text twice, which standard input does not allow: use --file");
    in->one_path = "-";
    o->paths = &in->one_path;
    o->n_paths = 1;
    return WEIR_EXIT_OK;
}

/* Which of the sources it is. */
static int choose(weir_input *in, const weir_cli *cli, const weir_text_args *text, weir_docs_options *o)
{
    const weir_opt_list *files = &text->files;
    if (cli->n_operands && files->n)
        return weir_cli_usage(cli, "--file %s and the text \"%s\" exclude each other", files->v[0], cli->operand[0]);
    for (int i = 0; i < files->n; i++)
        if (strcmp(files->v[i], "-") == 0 && files->n > 1)
            return weir_cli_usage(cli, "--file -: standard input cannot be joined with other files");
    for (int i = 0; i < cli->n_operands; i++)
        if (strcmp(cli->operand[i], "-") == 0 && cli->n_operands > 1)
            return weir_cli_usage(cli, "-: standard input cannot be joined with other texts");
    if (files->n == 0 && cli->n_operands == 0)
        return use_stdin(in, cli, o, false);
    const char *first = files->n ? files->v[0] : cli->operand[0];
    if (strcmp(first, "-") == 0)
        return use_stdin(in, cli, o, true);
    if (files->n == 0 && (text->jsonl || text->field))
        return weir_cli_usage(cli, "--%s is about records of a file, but the text \"%s\" was given",
                              text->field ? "field" : "jsonl", first);
    o->paths = files->v;
    o->n_paths = files->n;
    o->texts = cli->operand;
    o->n_texts = cli->n_operands;
    int code = WEIR_EXIT_OK;
    for (int i = 0; i < o->n_texts && code == WEIR_EXIT_OK; i++)
        code = check_text(cli, o->texts[i]);
    for (int i = 0; i < o->n_paths && code == WEIR_EXIT_OK; i++)
        code = check_file(cli, o->paths[i]);
    return code;
}

int weir_input_open(weir_input *in, const weir_cli *cli, const weir_text_args *text, bool ids)
{
    weir_docs_options o;
    weir_err err = {0};
    docs_options(&o, text, ids);
    o.stop = in->stop;
    int code = text->shard ? read_shard(&o, cli, text->shard) : WEIR_EXIT_OK;
    if (code == WEIR_EXIT_OK)
        code = choose(in, cli, text, &o);
    if (code != WEIR_EXIT_OK)
        return code;
    in->text = o;
    in->bytes = plain_bytes(&o);
    return weir_docs_open(&in->docs, &o, &err) == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(cli, &err);
}

void weir_input_close(weir_input *in)
{
    weir_docs_free(in->docs);
    free(in->sentence);
    in->docs = NULL;
    in->sentence = NULL;
}

void weir_input_title(const weir_input *in, char *buf, size_t n)
{
    const weir_docs_options *o = &in->text;
    size_t at = 0;
    snprintf(buf, n, "%s", in->sentence ? "the first of brook's sentences" : o->n_texts ? "arguments" : "");
    for (int i = 0; i < o->n_paths && at < n; i++) {
        const char *slash = strrchr(o->paths[i], '/'), *name = slash ? slash + 1 : o->paths[i];
        at +=
            (size_t)snprintf(buf + at, n - at, "%s%s", i ? ", " : "", strcmp(name, "-") == 0 ? "standard input" : name);
    }
}
