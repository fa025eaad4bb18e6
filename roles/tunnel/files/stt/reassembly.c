// SPDX-License-Identifier: GPL-2.0
/*
 * Reassembly of frames whose segments arrive one by one.
 *
 * A namespace keeps at most reasm_memory bytes of segments; past that the oldest frames make
 * room. A frame that is not complete after reasm_timeout_ms is given up: segments are not sent
 * again, so what is missing then is lost. Segments are kept as runs in the order of their
 * offsets, joined as they arrive, so a frame costs a handful of buffers and not one a segment.
 */
#include <linux/jhash.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/inet_ecn.h>

#include "stt.h"

#define BUCKETS (1 << STT_BUCKET_BITS)

/* More separate runs than this in one frame is an attack on the search for the right place. */
#define MAX_RUNS 256

#define MIN_MEMORY (256UL * 1024)
#define MIN_TIMEOUT_MS 10U
#define MAX_TIMEOUT_MS 60000U

static unsigned long reasm_memory = 8UL * 1024 * 1024;
module_param(reasm_memory, ulong, 0644);
MODULE_PARM_DESC(reasm_memory, "bytes of incomplete frames that a network namespace may hold");

static unsigned int reasm_timeout_ms = 1000;
module_param(reasm_timeout_ms, uint, 0644);
MODULE_PARM_DESC(reasm_timeout_ms, "time to wait for the missing segments of a frame");

/* One incomplete frame. */
struct stt_partial {
	struct list_head list;
	struct stt_flow flow;
	unsigned long expires;
	struct sk_buff *first;		/* runs by offset, linked through next */
	struct sk_buff *last;
	unsigned int memory;
	unsigned int runs;
	u32 received;
	u16 total;
	u8 tos;
};

/* What a run covers, in its control block. */
struct stt_run {
	u32 start;
	u32 end;
};

static struct kmem_cache *partials_cache;
static u32 hash_seed __read_mostly;

static struct stt_run *run_of(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct stt_run) > sizeof(skb->cb));
	return (struct stt_run *)skb->cb;
}

static unsigned long memory_limit(void)
{
	return max(READ_ONCE(reasm_memory), MIN_MEMORY);
}

static unsigned long timeout_jiffies(void)
{
	return msecs_to_jiffies(clamp(READ_ONCE(reasm_timeout_ms), MIN_TIMEOUT_MS, MAX_TIMEOUT_MS));
}

int stt_reassembly_init(void)
{
	BUILD_BUG_ON(sizeof(struct stt_flow) % sizeof(u32));
	hash_seed = get_random_u32();
	partials_cache = KMEM_CACHE(stt_partial, 0);
	return partials_cache ? 0 : -ENOMEM;
}

void stt_reassembly_exit(void)
{
	kmem_cache_destroy(partials_cache);
}

int stt_reassembly_start(struct stt_net *sn)
{
	struct stt_bucket *buckets;
	int at;

	if (sn->buckets)
		return 0;
	buckets = kvmalloc_array(BUCKETS, sizeof(*buckets), GFP_KERNEL);
	if (!buckets)
		return -ENOMEM;
	for (at = 0; at < BUCKETS; at++) {
		spin_lock_init(&buckets[at].lock);
		INIT_LIST_HEAD(&buckets[at].partials);
	}
	sn->buckets = buckets;
	return 0;
}

static struct stt_bucket *bucket_of(struct stt_net *sn, const struct stt_flow *flow)
{
	u32 hash = jhash2((const u32 *)flow, sizeof(*flow) / sizeof(u32), hash_seed);

	return &sn->buckets[hash & (BUCKETS - 1)];
}

static bool same_flow(const struct stt_flow *one, const struct stt_flow *other)
{
	return !memcmp(one, other, sizeof(*one));
}

/* Take a frame out of the books; the bucket is locked. What it holds stays with the caller. */
static void unlink_partial(struct stt_net *sn, struct stt_partial *partial)
{
	list_del(&partial->list);
	atomic_long_sub(partial->memory, &sn->memory);
	atomic_dec(&sn->partials);
}

static void free_partial(struct stt_partial *partial)
{
	kfree_skb_list(partial->first);
	kmem_cache_free(partials_cache, partial);
}

static bool has_room(const struct stt_net *sn, unsigned int bytes)
{
	return atomic_long_read(&sn->memory) + bytes <= memory_limit();
}

/* Give up the oldest frames, bucket by bucket, until there is room for as many bytes. */
static void make_room(struct stt_net *sn, unsigned int bytes)
{
	long wanted = (long)(memory_limit() - memory_limit() / 8) - (long)bytes;
	int at;

	for (at = 0; at < BUCKETS && atomic_long_read(&sn->memory) > wanted; at++) {
		struct stt_bucket *bucket;
		struct stt_partial *oldest;

		bucket = &sn->buckets[(u32)atomic_inc_return(&sn->hand) & (BUCKETS - 1)];
		if (list_empty(&bucket->partials))
			continue;
		spin_lock(&bucket->lock);
		oldest = list_first_entry_or_null(&bucket->partials, struct stt_partial, list);
		if (oldest)
			unlink_partial(sn, oldest);
		spin_unlock(&bucket->lock);
		if (oldest) {
			free_partial(oldest);
			stt_net_count(sn, STT_NET_EVICTED);
		}
	}
}

static void collect_expired(struct stt_net *sn, struct stt_bucket *bucket, bool all,
			    struct list_head *expired)
{
	struct stt_partial *partial, *next;

	spin_lock_bh(&bucket->lock);
	list_for_each_entry_safe(partial, next, &bucket->partials, list) {
		if (all || time_after_eq(jiffies, partial->expires)) {
			unlink_partial(sn, partial);
			list_add_tail(&partial->list, expired);
		}
	}
	spin_unlock_bh(&bucket->lock);
}

static void sweep(struct stt_net *sn, bool all)
{
	struct stt_partial *partial, *next;
	int at;

	for (at = 0; at < BUCKETS; at++) {
		LIST_HEAD(expired);

		if (list_empty(&sn->buckets[at].partials))
			continue;
		collect_expired(sn, &sn->buckets[at], all, &expired);
		list_for_each_entry_safe(partial, next, &expired, list) {
			free_partial(partial);
			local_bh_disable();
			stt_net_count(sn, STT_NET_TIMEOUT);
			local_bh_enable();
		}
		cond_resched();
	}
}

void stt_expire(struct work_struct *work)
{
	struct stt_net *sn = container_of(work, struct stt_net, expiry.work);

	sweep(sn, false);
	if (atomic_read(&sn->partials))
		schedule_delayed_work(&sn->expiry, timeout_jiffies() / 2 + 1);
}

/* The namespace ends; nothing is received any more. */
void stt_reassembly_end(struct stt_net *sn)
{
	if (!sn->buckets)
		return;
	cancel_delayed_work_sync(&sn->expiry);
	sweep(sn, true);
	WARN_ON_ONCE(atomic_read(&sn->partials) || atomic_long_read(&sn->memory));
	kvfree(sn->buckets);
}

static struct stt_partial *find_partial(struct stt_bucket *bucket, const struct stt_flow *flow)
{
	struct stt_partial *partial;

	list_for_each_entry(partial, &bucket->partials, list)
		if (same_flow(&partial->flow, flow))
			return partial;
	return NULL;
}

static struct stt_partial *new_partial(struct stt_net *sn, struct stt_bucket *bucket,
				       const struct stt_flow *flow, u16 total, u8 tos)
{
	struct stt_partial *partial = kmem_cache_zalloc(partials_cache, GFP_ATOMIC | __GFP_NOWARN);

	if (!partial)
		return NULL;
	partial->flow = *flow;
	partial->total = total;
	partial->tos = tos;
	partial->expires = jiffies + timeout_jiffies();
	list_add_tail(&partial->list, &bucket->partials);
	atomic_inc(&sn->partials);
	/* Does nothing if it is pending; it goes on for as long as there is something to wait for. */
	schedule_delayed_work(&sn->expiry, timeout_jiffies() / 2 + 1);
	return partial;
}

static void account(struct stt_net *sn, struct stt_partial *partial, unsigned int bytes)
{
	partial->memory += bytes;
	atomic_long_add(bytes, &sn->memory);
}

/* Append a run to the one that it follows on, if the buffers allow it; delta bytes are added. */
static bool join_run(struct sk_buff *to, struct sk_buff *from, int *delta)
{
	bool stolen;

	if (!skb_try_coalesce(to, from, &stolen, delta))
		return false;
	kfree_skb_partial(from, stolen);
	return true;
}

enum insert_result {
	INSERTED,
	DUPLICATE = STT_NET_DUPLICATE,
	OVERLAP = STT_NET_OVERLAP,
	TOO_MANY = STT_NET_TOO_MANY,
};

/* Put a segment in its place. It is taken over only if INSERTED is returned. */
static enum insert_result insert_run(struct stt_net *sn, struct stt_partial *partial,
				     struct sk_buff *skb)
{
	struct stt_run run = *run_of(skb);
	struct sk_buff *before = NULL, *after;
	int delta;

	if (partial->last && run_of(partial->last)->start <= run.start) {
		before = partial->last;
		after = NULL;
	} else {
		for (after = partial->first; after && run_of(after)->start <= run.start;
		     after = after->next)
			before = after;
	}
	if (before && run.end <= run_of(before)->end)
		return DUPLICATE;
	if ((before && run.start < run_of(before)->end) ||
	    (after && run.end > run_of(after)->start))
		return OVERLAP;
	partial->received += run.end - run.start;
	if (before && run_of(before)->end == run.start && join_run(before, skb, &delta)) {
		run_of(before)->end = run.end;
		account(sn, partial, delta);
		return INSERTED;
	}
	if (partial->runs == MAX_RUNS) {
		partial->received -= run.end - run.start;
		return TOO_MANY;
	}
	partial->runs++;
	account(sn, partial, skb->truesize);
	skb->next = after;
	if (before)
		before->next = skb;
	else
		partial->first = skb;
	if (!after)
		partial->last = skb;
	return INSERTED;
}

/* Make one packet of the runs: joined where buffers allow it, the others as its fragment list. */
static struct sk_buff *join_frame(struct sk_buff *head)
{
	struct sk_buff *skb = head->next, *last = head, *next;
	int delta;

	head->next = NULL;
	if (skb_unclone(head, GFP_ATOMIC)) {
		kfree_skb(head);
		kfree_skb_list(skb);
		return NULL;
	}
	for (; skb; skb = next) {
		unsigned int length = skb->len;

		next = skb->next;
		skb->next = NULL;
		if (join_run(last, skb, &delta)) {
			if (last != head) {
				head->len += length;
				head->data_len += length;
				head->truesize += delta;
			}
			continue;
		}
		head->len += length;
		head->data_len += length;
		head->truesize += skb->truesize;
		if (last == head)
			skb_shinfo(head)->frag_list = skb;
		else
			last->next = skb;
		last = skb;
	}
	return head;
}

/*
 * Take over a segment (skb->data at its payload). Returns the whole STT frame when this segment
 * was the missing one, else NULL. The type of service gets the congestion mark of any segment.
 */
struct sk_buff *stt_reassemble(struct stt_net *sn, struct sk_buff *skb, const struct stt_flow *flow,
			       u32 seq, u8 *tos)
{
	struct stt_bucket *bucket = bucket_of(sn, flow);
	u16 total = seq >> 16, start = seq & U16_MAX;
	struct stt_partial *partial;
	struct sk_buff *frame;
	int outcome;

	/* A list inside a list has no meaning to the stack, and a packet's device may go away. */
	if (skb_has_frag_list(skb) && skb_linearize(skb)) {
		stt_net_count(sn, STT_NET_NO_MEMORY);
		goto drop;
	}
	skb->dev = NULL;
	*run_of(skb) = (struct stt_run){ .start = start, .end = start + skb->len };
	if (!has_room(sn, skb->truesize)) {
		make_room(sn, skb->truesize);
		if (!has_room(sn, skb->truesize)) {
			stt_net_count(sn, STT_NET_NO_MEMORY);
			goto drop;
		}
	}

	spin_lock(&bucket->lock);
	partial = find_partial(bucket, flow);
	if (!partial)
		partial = new_partial(sn, bucket, flow, total, *tos);
	if (!partial)
		outcome = STT_NET_NO_MEMORY;
	else if (partial->total != total)
		outcome = STT_NET_MISMATCH;
	else
		outcome = insert_run(sn, partial, skb);
	if (outcome != INSERTED) {
		spin_unlock(&bucket->lock);
		stt_net_count(sn, outcome);
		goto drop;
	}
	if (INET_ECN_is_ce(*tos))
		partial->tos = *tos;
	if (partial->received < total) {
		spin_unlock(&bucket->lock);
		return NULL;
	}
	unlink_partial(sn, partial);
	spin_unlock(&bucket->lock);

	*tos = partial->tos;
	frame = join_frame(partial->first);
	kmem_cache_free(partials_cache, partial);
	stt_net_count(sn, frame ? STT_NET_REASSEMBLED : STT_NET_NO_MEMORY);
	return frame;
drop:
	kfree_skb(skb);
	return NULL;
}
