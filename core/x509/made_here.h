// What was made here last, by its bytes: a reader in the same process gets it without OpenSSL, which takes longer to
// read a certificate or a request than it takes to make one. Private to core/x509.
#pragma once

#include "core/base/containers/memo.h"

namespace wavetank::x509 {

// A memo of reading: what is kept for bytes is what reading them gives.
template <class Made>
Memo<Made>& MadeHere() {
  thread_local Memo<Made> memo(2048);
  return memo;
}

}  // namespace wavetank::x509
