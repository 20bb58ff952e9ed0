// Of a generator whose work may have to wait before it is sent: what it asked of others holds the push up.
#pragma once

#include "core/base/host.h"

namespace wavetank::pilot {

class GenerationGate {
 public:
  virtual ~GenerationGate() = default;
  // Whether what was generated last, in this very task, must wait.
  virtual bool MustWait() const = 0;
  // `then` is called when it need not wait any more, perhaps at once.
  virtual void Wait(Callback then) = 0;
};

}  // namespace wavetank::pilot
