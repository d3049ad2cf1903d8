/* export/place.h: where a notebook goes, and how it names its file from there. */
#ifndef WEIR_NOTEBOOK_PLACE_H
#define WEIR_NOTEBOOK_PLACE_H

/* The name of FILE.h5 (FILE.h5.part) with another end, in the current directory. To be freed; NULL: out of memory. */
char *weir_nb_default_name(const char *file, const char *end);
/* How the notebook at `out` names `file`: from the notebook's own directory where the file lies in it or below, or
 * where both lie below the current directory, so that they can be moved together; otherwise the whole path. out NULL or
 * "-": as it was given. To be freed; NULL: out of memory. */
char *weir_nb_file_from(const char *out, const char *file);

#endif
