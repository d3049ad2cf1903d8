/* weir/weir.h: everything. Start reading at model.h, then run.h and hook.h. */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include "base.h"
#include "chat.h"
#include "compose.h"
#include "edit.h"
#include "facts.h"
#include "grad.h"
#include "hook.h"
#include "json.h"
#include "lens.h"
#include "linalg.h"
#include "model.h"
#include "moments.h"
#include "neurons.h"
#include "parts.h"
#include "record.h"
#include "rome.h"
#include "run.h"
#include "sample.h"
#include "survey.h"
#include "tensor.h"
#include "text.h"
#include "tokenizer.h"
#include "tuned.h"
#include "values.h"
#include "weights.h"

#endif
