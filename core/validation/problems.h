// What is wrong with an object, as istiod's validation gathers it: one error as it is, several as
// github.com/hashicorp/go-multierror prints them.
#pragma once

#include <string>
#include <vector>

namespace wavetank::validation {

class Problems {
 public:
  // Nothing is added for an empty text.
  void Add(std::string text) {
    if (!text.empty()) all_.push_back(std::move(text));
  }
  // An error that istiod always puts into a list, be it alone.
  void AddToList(std::string text) {
    listed_ = true;
    Add(std::move(text));
  }
  bool empty() const { return all_.empty(); }
  size_t size() const { return all_.size(); }
  // "" if there are none.
  std::string Text() const;

 private:
  std::vector<std::string> all_;
  bool listed_ = false;
};

}  // namespace wavetank::validation
