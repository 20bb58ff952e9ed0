#include "fakes/envoy/upstream/dial.h"

#include <algorithm>
#include <utility>

#include "core/base/assert.h"

namespace wavetank::envoysim {
namespace {

constexpr Duration kNextAttempt = 300ms;

}  // namespace

bool Dial::Start(const Origin& origin, const SocketAddress& address,
                 std::shared_ptr<const std::vector<SocketAddress>> more, Duration lead) {
  origin_ = origin;
  more_ = std::move(more);
  number_ = process_.NewConnection();
  if (HasNext()) process_.NewConnection();  // each attempt has one of its own, too
  id_ = process_.fabric().Connect(origin_, address, handler_, lead);
  if (process_.fabric().state(id_) == Fabric::State::kConnected) return true;
  if (HasNext()) timer_ = process_.host().RunAfter(lead + kNextAttempt, [this] { TryNext(Duration::zero()); });
  return false;
}

void Dial::TryNext(Duration lead) {
  process_.host().Cancel(timer_);
  timer_ = kNoTimer;
  WAVETANK_ASSERT(HasNext(), next_);
  const SocketAddress& address = (*more_)[next_++];
  process_.NewConnection();
  if (id_ != kNoConnection) others_.push_back(id_);
  id_ = process_.fabric().Connect(origin_, address, handler_, lead);
  if (HasNext()) timer_ = process_.host().RunAfter(lead + kNextAttempt, [this] { TryNext(Duration::zero()); });
  if (process_.fabric().state(id_) == Fabric::State::kConnected) handler_->OnConnected(id_);
}

bool Dial::Failed(ConnectionId attempt) {
  if (attempt == id_) {
    id_ = kNoConnection;
    if (!others_.empty()) {
      id_ = others_.back();
      others_.pop_back();
    }
  } else {
    others_.erase(std::remove(others_.begin(), others_.end(), attempt), others_.end());
  }
  if (HasNext()) {
    TryNext(Duration::zero());
    return true;
  }
  if (id_ != kNoConnection) return true;
  id_ = attempt;  // for whoever looks at what has failed
  return false;
}

void Dial::Settle(ConnectionId attempt) {
  process_.host().Cancel(timer_);
  timer_ = kNoTimer;
  if (attempt != id_) others_.push_back(std::exchange(id_, attempt));
  for (const ConnectionId other : std::exchange(others_, {})) {
    if (other != attempt) process_.fabric().Close(other, Fabric::End::kClient, CloseKind::kReset);
  }
}

void Dial::Close(CloseKind kind, std::string_view detail) {
  Settle(id_);
  process_.fabric().Close(id_, Fabric::End::kClient, kind, detail);
}

void Dial::Vanish() {
  process_.host().Cancel(timer_);
  timer_ = kNoTimer;
  for (const ConnectionId other : std::exchange(others_, {})) process_.fabric().Vanish(other, Fabric::End::kClient);
  process_.fabric().Vanish(id_, Fabric::End::kClient);
}

}  // namespace wavetank::envoysim
