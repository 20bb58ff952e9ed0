// Logs that hold private keys, tokens and passwords as they were, because whoever had them written asked for that
// (--keep-secrets). Their header says so, they are their owner's to read alone, and every verb that reads or writes one
// says so again.
#pragma once

#include <string>
#include <string_view>

#include "replay/event_log.h"

namespace wavetank::replay {

// Set in LogHeader::world.
inline constexpr std::string_view kKeepsSecretsKey = "keepsSecrets";

bool KeepsSecrets(const LogHeader& header);

// "FILE: holds private keys, ...": what is said of such a log, without a line's end.
std::string KeptSecretsNote(std::string_view path);

}  // namespace wavetank::replay
