/* A program in Scheme: lists, closures and recursion. */
#include <stdio.h>

#include <scheme.h>

#include "work.h"

static const char script[] =
	"(define (draw) (set! seed (remainder (+ (* seed 4096) 150889) 714025)) seed)"
	"(define (make n) (if (= n 0) '() (cons (remainder (draw) 1000) (make (- n 1)))))"
	"(define (smaller p l) (if (null? l) '() (if (< (car l) p) (cons (car l) (smaller p (cdr l)))"
	"  (smaller p (cdr l)))))"
	"(define (others p l) (if (null? l) '() (if (< (car l) p) (others p (cdr l))"
	"  (cons (car l) (others p (cdr l))))))"
	"(define (join a b) (if (null? a) b (cons (car a) (join (cdr a) b))))"
	"(define (sort l) (if (null? l) '() (join (sort (smaller (car l) (cdr l)))"
	"  (cons (car l) (sort (others (car l) (cdr l)))))))"
	"(define (sum l n) (if (null? l) n (sum (cdr l) (remainder (+ (* n 31) (car l)) 10007))))"
	"(define (tak x y z) (if (not (< y x)) z"
	"  (tak (tak (- x 1) y z) (tak (- y 1) z x) (tak (- z 1) x y))))"
	"(define result (+ (sum (sort (make 120)) 0) (tak 9 (remainder seed 4) 2)))";

uint64_t work(uint64_t seed)
{
	scheme *made = scheme_init_new();
	char first[48];
	char printed[64] = {0};

	scheme_set_output_port_string(made, printed, printed + sizeof(printed) - 1);
	snprintf(first, sizeof(first), "(define seed %u)", (unsigned)(seed * 7919 % 700000 + 1));
	scheme_load_string(made, first);
	scheme_load_string(made, script);
	scheme_load_string(made, "(write result)");
	scheme_deinit(made);
	free(made);
	return strtoull(printed, NULL, 10);
}
