// Connections that wait for a push, each once: what comes for one that already waits, or that is being pushed to, is
// merged (istiod: pilot/pkg/xds/pushqueue.go).
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/assert.h"
#include "core/base/host.h"
#include "core/model/push_request.h"

namespace wavetank::pilot {

// Shared by all connections that got the same request; merging makes a copy.
using PushRequestRef = std::shared_ptr<const PushRequest>;

// What the queue keeps with a connection.
struct PushQueueSlot {
  PushRequestRef pending;     // waits in the queue
  bool processing = false;    // was dequeued and is not done
  PushRequestRef while_busy;  // came meanwhile
  Time queued{};
};

template <class Client>  // has member `slot` of type PushQueueSlot
class PushQueue {
 public:
  explicit PushQueue(Host& host) : host_(host) {}

  void Enqueue(const std::shared_ptr<Client>& client, const PushRequestRef& request) {
    Merges merges;
    Enqueue(client, request, merges);
  }
  // All of them, in this order. Most that wait have waited for the same, so that what it comes to with the request is
  // made once for each that differs, not for each client.
  void Enqueue(const std::vector<std::shared_ptr<Client>>& clients, const PushRequestRef& request) {
    Merges merges;
    for (const std::shared_ptr<Client>& client : clients) Enqueue(client, request, merges);
  }

  bool empty() const { return queue_.empty(); }
  size_t size() const { return queue_.size(); }

  struct Item {
    std::shared_ptr<Client> client;
    PushRequestRef request;
  };
  // The queue must not be empty. MarkDone is owed for the client.
  Item Dequeue() {
    WAVETANK_ASSERT(!queue_.empty());
    Item item{std::move(queue_.front()), nullptr};
    queue_.pop_front();
    PushQueueSlot& slot = item.client->slot;
    WAVETANK_ASSERT(!slot.processing);  // one push at a time for each
    WAVETANK_ASSERT(slot.while_busy == nullptr);
    item.request = std::exchange(slot.pending, nullptr);
    WAVETANK_ASSERT(item.request != nullptr);  // what waits waits for something
    slot.processing = true;
    return item;
  }

  void MarkDone(const std::shared_ptr<Client>& client) {
    WAVETANK_ASSERT(client->slot.processing);          // it was dequeued, and is done once
    WAVETANK_ASSERT(client->slot.pending == nullptr);  // what came meanwhile is kept apart
    client->slot.processing = false;
    if (client->slot.while_busy != nullptr) Append(client, std::move(client->slot.while_busy));
    client->slot.while_busy = nullptr;
  }

 private:
  void Append(const std::shared_ptr<Client>& client, PushRequestRef request) {
    WAVETANK_ASSERT(request != nullptr);
    WAVETANK_ASSERT(client->slot.pending == nullptr);  // each waits once
    client->slot.pending = std::move(request);
    client->slot.queued = host_.Now();
    queue_.push_back(client);
  }
  // What each older request comes to with one newer. They are kept as long, so that an address means one of them.
  using Merges = absl::flat_hash_map<PushRequestRef, PushRequestRef>;

  void Enqueue(const std::shared_ptr<Client>& client, const PushRequestRef& request, Merges& merges) {
    PushQueueSlot& slot = client->slot;
    if (slot.processing) {
      slot.while_busy = Merged(slot.while_busy, request, merges);
    } else if (slot.pending != nullptr) {
      slot.pending = Merged(slot.pending, request, merges);
    } else {
      Append(client, request);
    }
  }
  PushRequestRef Merged(const PushRequestRef& older, const PushRequestRef& newer, Merges& merges) {
    if (older == nullptr) return newer;
    PushRequestRef& out = merges[older];
    if (out != nullptr) return out;
    auto merged = std::make_shared<PushRequest>(*older);
    merged->Merge(*newer, host_);
    merged->push = newer->push;
    return out = std::move(merged);
  }

  Host& host_;
  std::deque<std::shared_ptr<Client>> queue_;
};

}  // namespace wavetank::pilot
