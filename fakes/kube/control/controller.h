// What a cluster asks of a controller that it started.
#pragma once

namespace wavetank::fakekube {

class Controller {
 public:
  virtual ~Controller() = default;
  // Nothing is pending: what it has seen is done.
  virtual bool Settled() const = 0;
};

}  // namespace wavetank::fakekube
