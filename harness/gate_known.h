/* Architectures and toolkits that a gate file may name: a mistyped one would leave its gate out for ever. */
#ifndef KBENCH_GATE_KNOWN_H
#define KBENCH_GATE_KNOWN_H

#include "static_facts.h"
#include "words.h"

/* 0, or fail() where "90a" is no architecture of this build, of a golden file of static facts or of any build. */
int known_arch(const char *sm, struct place, const struct static_fact *, struct trouble *);
/* 0, or fail() where "13.0" is the begin of no toolkit of this build or of a golden file. Without either all pass. */
int known_toolkit(const char *toolkit, const char *built_by, struct place, struct trouble *);
bool same_toolkit(const char *wanted, const char *have);   /* "13.0" is any 13.0.x; "" is any */

#endif
