// What waits to be done for many clients, which take turns: each one's own things stay in order, and between two of a
// client's every other client that waits has one. So no client waits longer than it takes to do one thing for each
// client, however much some of them want.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>

namespace wavetank::serve {

// Push and Pop are O(log clients).
template <class T>
class FairQueue {
 public:
  bool empty() const { return turns_.empty(); }

  void Push(const std::string& client, T item) {
    const auto [it, first] = waiting_.try_emplace(client);
    it->second.push_back(std::move(item));
    if (first) turns_.push_back(it);
  }

  // Of the client whose turn it is, which then goes to the end of the line. The queue must not be empty.
  T Pop() {
    const auto it = turns_.front();
    turns_.pop_front();
    T out = std::move(it->second.front());
    it->second.pop_front();
    if (it->second.empty()) {
      waiting_.erase(it);
    } else {
      turns_.push_back(it);
    }
    return out;
  }

 private:
  using Waiting = std::map<std::string, std::deque<T>>;
  Waiting waiting_;  // clients with something to do
  std::deque<typename Waiting::iterator> turns_;
};

}  // namespace wavetank::serve
