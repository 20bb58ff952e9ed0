// Runs pieces of work in forks of this process, each with its own copy of all it sees, as many at a time as there are
// processors.
//
// A fork inherits a settled world for the price of the pages that it changes. This process must have one thread. A
// piece's answer is a text, and answers come in the order of the pieces, whenever they were done.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wavetank::check {

// `work(i)` for i < count, in a fork each; `done(i)` here whenever one has ended. `more(i)` is asked before a piece is
// begun: false ends it with those that are under way, and answers are as many as were begun. Internal: a fork died;
// says of what, and names it by `name` or its number. Unavailable: the system refuses processes or pipes.
absl::StatusOr<std::vector<std::string>> InForks(size_t count, int at_a_time,
                                                 const std::function<std::string(size_t)>& work,
                                                 const std::function<void(size_t)>& done,
                                                 const std::function<bool(size_t)>& more = nullptr,
                                                 const std::function<std::string(size_t)>& name = nullptr);

}  // namespace wavetank::check
