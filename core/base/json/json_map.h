// What holds the members of JSON objects: std::map's order and interface, as far as the JSON library asks for them, in
// half of its memory (docs/performance.md). nlohmann::json has it by cmake/overlay/nlohmann/json_fwd.hpp.
//
// A world is mostly JSON objects of few members whose names recur a million times. So a name is kept once for all, a
// member is its name's address and its value, and an object is a sorted list of its members' addresses. A member stays
// where it is until it is erased; iterators last until a member comes or goes, where std::map's outlast that.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace wavetank {

// The one copy of a name that lives as long as the process. Null: it is longer than others are, or there are many by
// now (names come from outside, too), and who asks keeps a copy. Any thread may ask. O(length).
const std::string* SharedJsonName(std::string_view name);

// A pair of a name and a value.
template <class Value>
class JsonMember {
  const std::string* shared_;  // null: `first` is this member's own

 public:
  const std::string& first;
  Value second;

  template <class V>
  JsonMember(std::string_view name, V&& value)
      : shared_(SharedJsonName(name)),
        first(shared_ != nullptr ? *shared_ : *new std::string(name)),
        second(std::forward<V>(value)) {}
  JsonMember(const JsonMember& other)
      : shared_(other.shared_),
        first(shared_ != nullptr ? *shared_ : *new std::string(other.first)),
        second(other.second) {}
  JsonMember& operator=(const JsonMember&) = delete;
  ~JsonMember() {
    if (shared_ == nullptr) delete &first;
  }
  // As a pair is one of another kind's, as of nlohmann::ordered_json.
  template <class Other>
  operator std::pair<const std::string, Other>() const {  // NOLINT(google-explicit-constructor)
    return {first, second};
  }

  friend bool operator==(const JsonMember& a, const JsonMember& b) {
    return (&a.first == &b.first || a.first == b.first) && a.second == b.second;
  }
  friend std::partial_ordering operator<=>(const JsonMember& a, const JsonMember& b) {
    const std::strong_ordering order = a.first <=> b.first;
    if (order != 0) return order;
    return a.second <=> b.second;
  }
};

// For structured bindings.
template <size_t kIndex, class Value>
const auto& get(const JsonMember<Value>& member) {
  if constexpr (kIndex == 0) {
    return member.first;
  } else {
    return member.second;
  }
}
template <size_t kIndex, class Value>
auto& get(JsonMember<Value>& member) {
  if constexpr (kIndex == 0) {
    return member.first;
  } else {
    return member.second;
  }
}

// The library's ObjectType; it gives an order of names and an allocator, both of which are std's own.
template <class Key, class Value, class Less, class Allocator>
class JsonMap {
 public:
  using key_type = Key;
  using mapped_type = Value;
  using value_type = JsonMember<Value>;
  using key_compare = std::less<>;  // transparent: the library then looks names up as they are given
  using size_type = size_t;
  using difference_type = ptrdiff_t;
  using reference = value_type&;
  using const_reference = const value_type&;

  template <bool kConst>
  class Iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = JsonMember<Value>;
    using difference_type = ptrdiff_t;
    using pointer = std::conditional_t<kConst, const value_type*, value_type*>;
    using reference = std::conditional_t<kConst, const value_type&, value_type&>;

    Iterator() = default;
    explicit Iterator(value_type** at) : at_(at) {}
    operator Iterator<true>() const { return Iterator<true>(at_); }  // NOLINT(google-explicit-constructor): as std's
    reference operator*() const { return **at_; }
    pointer operator->() const { return *at_; }
    reference operator[](difference_type n) const { return *at_[n]; }
    Iterator& operator+=(difference_type n) {
      at_ += n;
      return *this;
    }
    Iterator& operator-=(difference_type n) { return *this += -n; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this -= 1; }
    Iterator operator++(int) { return Iterator(at_++); }
    Iterator operator--(int) { return Iterator(at_--); }
    friend Iterator operator+(Iterator a, difference_type n) { return a += n; }
    friend Iterator operator+(difference_type n, Iterator a) { return a += n; }
    friend Iterator operator-(Iterator a, difference_type n) { return a -= n; }
    friend difference_type operator-(Iterator a, Iterator b) { return a.at_ - b.at_; }
    friend bool operator==(Iterator a, Iterator b) { return a.at_ == b.at_; }
    friend auto operator<=>(Iterator a, Iterator b) { return a.at_ <=> b.at_; }

   private:
    friend class JsonMap;
    value_type** at_ = nullptr;
  };
  using iterator = Iterator<false>;
  using const_iterator = Iterator<true>;

  JsonMap() = default;
  JsonMap(const JsonMap& other) {
    Grow(other.size_);
    while (size_ < other.size_) Append(std::make_unique<value_type>(*other.members_[size_]));
  }
  JsonMap(JsonMap&& other) noexcept { swap(other); }
  template <class Input>
  JsonMap(Input first, Input last) {
    insert(first, last);
  }
  JsonMap(std::initializer_list<value_type> members) { insert(members.begin(), members.end()); }
  JsonMap& operator=(JsonMap other) noexcept {
    swap(other);
    return *this;
  }
  ~JsonMap() { clear(); }

  void swap(JsonMap& other) noexcept {
    members_.swap(other.members_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  iterator begin() { return iterator(members_.get()); }
  iterator end() { return iterator(End()); }
  const_iterator begin() const { return const_iterator(members_.get()); }
  const_iterator end() const { return const_iterator(End()); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  bool empty() const { return size_ == 0; }
  size_type size() const { return size_; }
  size_type max_size() const { return UINT32_MAX; }
  void reserve(size_type size) { Grow(static_cast<uint32_t>(size)); }
  void clear() {
    while (size_ > 0) delete members_[--size_];
  }

  // O(log n) comparisons of names; of few members one look at each.
  iterator find(std::string_view name) { return iterator(Find(name)); }
  const_iterator find(std::string_view name) const { return const_iterator(Find(name)); }
  size_type count(std::string_view name) const { return Find(name) != End() ? 1 : 0; }
  bool contains(std::string_view name) const { return Find(name) != End(); }

  // O(n) moves of addresses, unless it is the last by name.
  template <class V>
  std::pair<iterator, bool> emplace(std::string_view name, V&& value) {
    value_type** const at = LowerBound(name);
    if (at != End() && (*at)->first == name) return {iterator(at), false};
    const ptrdiff_t index = at - members_.get();
    Append(std::make_unique<value_type>(name, std::forward<V>(value)));
    std::rotate(members_.get() + index, End() - 1, End());
    return {iterator(members_.get() + index), true};
  }
  template <class V>
  iterator emplace_hint(const_iterator hint, std::string_view name, V&& value) {
    if (hint != end() || (size_ > 0 && !(members_[size_ - 1]->first < name)))
      return emplace(name, std::forward<V>(value)).first;
    Append(std::make_unique<value_type>(name, std::forward<V>(value)));
    return iterator(End() - 1);
  }
  std::pair<iterator, bool> insert(const value_type& member) { return emplace(member.first, member.second); }
  template <class Input>
  void insert(Input first, Input last) {
    for (; first != last; ++first) emplace_hint(end(), first->first, first->second);
  }
  mapped_type& operator[](std::string_view name) { return emplace(name, nullptr).first->second; }

  iterator erase(const_iterator at) { return erase(at, at + 1); }
  iterator erase(const_iterator first, const_iterator last) {
    std::for_each(first.at_, last.at_, std::default_delete<value_type>());
    std::copy(last.at_, End(), first.at_);
    size_ -= static_cast<uint32_t>(last - first);
    return iterator(first.at_);
  }
  size_type erase(std::string_view name) {
    value_type** const at = Find(name);
    if (at == End()) return 0;
    erase(const_iterator(at));
    return 1;
  }

  friend bool operator==(const JsonMap& a, const JsonMap& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }
  friend std::partial_ordering operator<=>(const JsonMap& a, const JsonMap& b) {
    return std::lexicographical_compare_three_way(
        a.begin(), a.end(), b.begin(), b.end(),
        [](const value_type& one, const value_type& other) -> std::partial_ordering { return one <=> other; });
  }

 private:
  static constexpr uint32_t kFew = 8;

  value_type** End() const { return members_.get() + size_; }
  value_type** Find(std::string_view name) const {
    if (size_ <= kFew) {
      return std::find_if(members_.get(), End(), [&](const value_type* member) { return member->first == name; });
    }
    value_type** const at = LowerBound(name);
    return at != End() && (*at)->first == name ? at : End();
  }
  value_type** LowerBound(std::string_view name) const {
    return std::lower_bound(members_.get(), End(), name,
                            [](const value_type* member, std::string_view of) { return member->first < of; });
  }
  void Append(std::unique_ptr<value_type> member) {
    if (size_ == capacity_) Grow(capacity_ == 0 ? 2 : 2 * capacity_);
    members_[size_++] = member.release();
  }
  void Grow(uint32_t capacity) {
    if (capacity <= capacity_) return;
    std::unique_ptr<value_type*[]> more(new value_type*[capacity]);
    std::copy(members_.get(), End(), more.get());
    members_ = std::move(more);
    capacity_ = capacity;
  }

  std::unique_ptr<value_type*[]> members_;  // by name; each is owned
  uint32_t size_ = 0, capacity_ = 0;
};

}  // namespace wavetank

template <class Value>
struct std::tuple_size<wavetank::JsonMember<Value>> : std::integral_constant<size_t, 2> {};
template <class Value>
struct std::tuple_element<0, wavetank::JsonMember<Value>> {
  using type = const std::string;
};
template <class Value>
struct std::tuple_element<1, wavetank::JsonMember<Value>> {
  using type = Value;
};
